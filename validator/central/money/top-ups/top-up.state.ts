/** States of a charge for a top-up, and how long its answer is waited for. Pure. */

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

/** From where each state is reached. Money that comes late still comes: of the ends only `succeeded` is one. */
export const REACHED_FROM: Readonly<Record<TopUpState, readonly TopUpState[]>> = {
  charging: [],
  pending: ['charging'],
  succeeded: ['charging', 'pending', 'unanswered', 'declined'],
  declined: ['charging', 'pending', 'unanswered'],
  unanswered: ['charging', 'pending'],
};

const HOUR_MS = 3_600_000;
/** Processors forget idempotency keys after a day: a charge that is sent again later could be a second one. */
const CHARGING_FOR_MS = 23 * HOUR_MS;
/** As long as a bank takes. */
const PENDING_FOR_MS = 14 * 24 * HOUR_MS;

export type AskedTopUp = { state: TopUpState; createdMs: number };

/** Whether nobody waits for the processor's answer any more. */
export function isGivenUp({ state, createdMs }: AskedTopUp, nowMs: number): boolean {
  return nowMs - createdMs >= (state === 'pending' ? PENDING_FOR_MS : CHARGING_FOR_MS);
}
