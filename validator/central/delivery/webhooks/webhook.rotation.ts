/** Which secrets of a webhook sign: the present one, and each before it for a day since it was replaced. Pure. */
import { z } from 'zod';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Webhook } from '../../platform/database/tables.ts';

type Secrets = Pick<Webhook, 'secret_sealed' | 'replaced_json'>;

/** How long a replaced secret is signed with too: receivers change theirs meanwhile. */
const ROTATION_MS = 24 * 60 * 60 * 1000;
/** Each is one more signature in the header of every delivery. */
const MAX_REPLACED = 5;

/** The newest first. */
const Replaced = z.array(z.object({ sealed: z.string(), untilMs: z.int() }));

function replacedOf({ replaced_json: json }: Secrets, nowMs: number): z.output<typeof Replaced> {
  return Replaced.parse(JSON.parse(json)).filter(({ untilMs }) => nowMs < untilMs);
}

/** Sealed, the newest first. */
export function signingSecrets(row: Secrets, nowMs: number): string[] {
  return [row.secret_sealed, ...replacedOf(row, nowMs).map(({ sealed }) => sealed)];
}

/** The columns with `sealed` as the present secret. Throws `conflict` when too many sign beside it. */
export function rotated(row: Secrets, sealed: string, nowMs: number): Secrets {
  const kept = replacedOf(row, nowMs);
  const oldest = kept.at(-1);
  if (oldest !== undefined && kept.length >= MAX_REPLACED) {
    const from = naiveUtc(oldest.untilMs);
    throw new ApiError(
      'conflict',
      `The secret was rotated ${MAX_REPLACED} times within a day; the next rotation is possible from ${from}`,
      { hint: 'Use the secret of the last rotation, or wait until then.' },
    );
  }
  const replaced = [{ sealed: row.secret_sealed, untilMs: nowMs + ROTATION_MS }, ...kept];
  return { secret_sealed: sealed, replaced_json: JSON.stringify(replaced) };
}
