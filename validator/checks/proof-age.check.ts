/** Checks that processor and cards proved their work within the last day; cards without a proof have no weight. */
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail } from './check.ts';
import { PROCESSOR, unprovenIn } from './proof-record.ts';

const MAX_NAMED = 5;

export const proofAge = defineCheck({
  id: 'proof_age',
  detects: 'a processor or a card that passes no proof of work',
  required:
    'a proof in the expected time within the last day, of the processor and of each card to which one was offered; without it they have no weight',
  category: 'policy',
  effect: 'weight',
  whileRented: true,
  judge({ measured: { proof_record: record } }) {
    if (record === null) return unknown('not challenged');
    const unproven = unprovenIn(record);
    if (unproven.length === 0) return ok(`${record.devices.length} devices`);
    const measured = unproven.slice(0, MAX_NAMED).join(', ');
    const subject = unproven.includes(PROCESSOR) ? 'The host' : 'A card';
    return fail('PROOF_MISSING', measured, `${subject} has no proof of the last day`);
  },
  remedies: {
    PROOF_MISSING: 'Read the results of pow_cpu and pow_gpu, and stop other work on the host.',
  },
});
