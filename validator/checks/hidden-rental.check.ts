/** Checks that a rental which the host cannot recognise receives what the node offers. */
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail } from './check.ts';
import { describeMismatches } from './measured.ts';

export const hiddenRental = defineCheck({
  id: 'hidden_rental',
  detects: 'a host that starves its renters, and passes every test that it recognises',
  required:
    'a rental like any other, made by the validator, has the offered cards, memory, cores and disk in at least one of two measurements',
  category: 'runtime',
  mode: 'shadow',
  whileRented: true,
  judge({ measured: { hidden_rental: rental } }) {
    if (rental === null) return unknown('no hidden rental');
    const { mismatches, seen_once: once } = rental;
    if (mismatches.length === 0) {
      return ok(once.length === 0 ? 'as offered' : `below the offer once: ${once.join(', ')}`);
    }
    const failure = fail(
      'RENTAL_BELOW_OFFER',
      describeMismatches(mismatches),
      'A rental received less than offered',
    );
    // Both measurements found it, minutes apart, and no later inspection measures it again.
    return { ...failure, isCertain: true };
  },
  remedies: {
    RENTAL_BELOW_OFFER:
      'Correct the record in the portal, and stop programs that use cores, memory, disk or cards of pods.',
  },
});
