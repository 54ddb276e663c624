/**
 * Decides when the metering job posts use to the ledger: once an hour, after midnight (UTC), and while a limit of the
 * pod or of its account is near. State changes, debits and requests post independently of this module. Pure.
 */
import { startOfDay } from '#shared/runtime/clock.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { dueCharge } from './charge.plan.ts';
import { type AccountPlan, limitsOf, type ToSettle } from './settlement.plan.ts';

/** Default time between two postings of a running pod. */
export const POSTING_INTERVAL_MS = 3_600_000;
/** Number of ticks before a limit from which on every tick posts. */
const NEAR_TICKS = 2;
const HASH_DIGITS = 8;

export type PostingSchedule = { postingMs: number; tickMs: number };

/** Returns the meters of an account whose use this tick posts. */
export function duePostings(
  plan: AccountPlan,
  nowMs: number,
  schedule: PostingSchedule,
): readonly ToSettle[] {
  const phaseMs = phaseOf(plan.accountId, schedule.postingMs);
  return plan.due.filter((due) => isDue(due, plan, { ...schedule, nowMs, phaseMs }));
}

function isDue(
  { meter, untilMs }: AccountPlan['due'][number],
  { cutOffMs }: AccountPlan,
  { postingMs, tickMs, nowMs, phaseMs }: PostingSchedule & { nowMs: number; phaseMs: number },
): boolean {
  if (dueCharge(meter, untilMs) === null) return false;
  // The first posting ends the hold of the rental.
  if (meter.hold_id !== null) return true;
  // A day of the provider's billing, and a month of the ledger, is complete soon after its end.
  if (startOfDay(untilMs) > meter.settled_to_ms) return true;
  const periodOf = (atMs: number) => Math.floor((atMs - phaseMs) / postingMs);
  if (periodOf(untilMs) > periodOf(meter.settled_to_ms)) return true;
  const nearMs = nowMs + NEAR_TICKS * tickMs;
  return limitsOf(meter, cutOffMs).some((ms) => ms <= nearMs);
}

/** Start of the account's hours within the hour, so that the postings of all accounts spread over it. */
function phaseOf(accountId: string, postingMs: number): number {
  return Number.parseInt(sha256Hex(accountId).slice(0, HASH_DIGITS), 16) % postingMs;
}
