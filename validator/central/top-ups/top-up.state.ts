/** States of a charge for a top-up, and when the processor is asked again. Pure. */

/** `charging`: not answered yet; `pending`: the processor works on it; `unanswered`: given up, though it may still succeed. */
export const TOP_UP_STATES = [
  'charging',
  'pending',
  'succeeded',
  'declined',
  'unanswered',
] as const;
export type TopUpState = (typeof TOP_UP_STATES)[number];

/** Those that an account has at most one of. */
export const IN_FLIGHT = ['charging', 'pending'] as const satisfies readonly TopUpState[];

/** From where each state is reached. Money that came late still came: `unanswered` is no end. */
export const REACHED_FROM: Readonly<Record<TopUpState, readonly TopUpState[]>> = {
  charging: [],
  pending: ['charging'],
  succeeded: ['charging', 'pending', 'unanswered'],
  declined: ['charging', 'pending', 'unanswered'],
  unanswered: ['charging', 'pending'],
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const PAUSES_MS: readonly number[] = [10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS];
/** Processors forget idempotency keys after a day: a charge that is sent again later could be a second one. */
const GIVE_UP_MS = 23 * HOUR_MS;

/** When the processor is asked again about a charge of that age; null: no more. */
export function nextAskAt(
  { createdMs, attempts }: { createdMs: number; attempts: number },
  nowMs: number,
): number | null {
  if (nowMs - createdMs >= GIVE_UP_MS) return null;
  return nowMs + (PAUSES_MS[attempts - 1] ?? HOUR_MS);
}
