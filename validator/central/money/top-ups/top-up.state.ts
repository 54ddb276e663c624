/**
 * States of a top-up's charge, and of the auto top-up that starts the charge. ../README.md has the state diagram. Pure.
 */

/**
 * `charging`: not answered yet; `pending`: the processor is working on the charge; `unanswered`: no longer queried, but
 * may still succeed.
 */
export const TOP_UP_STATES = [
  'charging',
  'pending',
  'succeeded',
  'declined',
  'unanswered',
] as const;
export type TopUpState = (typeof TOP_UP_STATES)[number];

/** States of charges in flight; an account has at most one. */
export const IN_FLIGHT = ['charging', 'pending'] as const satisfies readonly TopUpState[];

/**
 * States from which each state can be reached. Money that arrives late is still credited, so only `succeeded` is final.
 */
export const REACHED_FROM: Readonly<Record<TopUpState, readonly TopUpState[]>> = {
  charging: [],
  pending: ['charging'],
  succeeded: ['charging', 'pending', 'unanswered', 'declined'],
  declined: ['charging', 'pending', 'unanswered'],
  unanswered: ['charging', 'pending'],
};

const HOUR_MS = 3_600_000;
/**
 * Time for which a charge is sent again. Processors drop idempotency keys after a day, so a later repeat could charge
 * twice.
 */
const CHARGING_FOR_MS = 23 * HOUR_MS;
/** Time that bank transfers can take. */
const PENDING_FOR_MS = 14 * 24 * HOUR_MS;

/** Returns true if a charge has been without a final answer for too long to query it again. */
export function isExpired(
  { state, createdMs }: { state: TopUpState; createdMs: number },
  nowMs: number,
): boolean {
  return nowMs - createdMs >= (state === 'pending' ? PENDING_FOR_MS : CHARGING_FOR_MS);
}

export const AUTO_TOP_UP_STATUSES = ['idle', 'charging', 'failed', 'suspended'] as const;
export type AutoTopUpStatus = (typeof AUTO_TOP_UP_STATUSES)[number];

const MINUTE_MS = 60_000;
/**
 * Pause after the first and the second decline in a row; the third decline suspends the auto top-up. The first pause is
 * shorter than the grace period of stopped pods.
 */
const BACKOFF_MS: readonly number[] = [5 * MINUTE_MS, HOUR_MS];
/** Pause after a successful charge, unless pods are about to stop. The pause limits the damage of a stolen card. */
const SUCCESS_PAUSE_MS = 10 * MINUTE_MS;
/** The pause after a success is skipped if pods will stop within this time. */
const URGENT_MS = 15 * MINUTE_MS;
/** Limit for a calendar month if the renter set no limit. One charge is always allowed. */
const DEFAULT_MONTHLY_LIMIT_UUSD = 1_000_000_000;
/** Pause after a charge that the processor did not answer. */
const UNANSWERED_PAUSE_MS = HOUR_MS;

export type ChargeFacts = {
  enabled: boolean;
  hasMethod: boolean;
  status: AutoTopUpStatus;
  notBeforeMs: number;
  thresholdUusd: number;
  amountUusd: number;
  /** Null for the default limit. */
  monthlyLimitUusd: number | null;
  /** Micro-dollars charged in this month, including charges in flight. */
  monthChargedUusd: number;
  available: number;
  burnPerHour: number;
  /** Time at which pods stop at the present cost; null if never. */
  runsOutAtMs: number | null;
  /** True if stopped pods would restart with more money. */
  awaitsMoney: boolean;
};

/** Returns true at or below the threshold, but only while pods run or wait for money. */
export function shouldCharge(facts: ChargeFacts, nowMs: number): boolean {
  const { monthChargedUusd: charged, amountUusd } = facts;
  const limit = facts.monthlyLimitUusd ?? Math.max(DEFAULT_MONTHLY_LIMIT_UUSD, amountUusd);
  const isReady = facts.status === 'idle' || facts.status === 'failed';
  const isSpent = facts.burnPerHour > 0 || facts.awaitsMoney;
  const isNeeded = isSpent && facts.available <= facts.thresholdUusd;
  const isWithinLimit = charged + amountUusd <= limit;
  const isPaused =
    nowMs < facts.notBeforeMs && !(facts.status === 'idle' && isUrgent(facts, nowMs));
  const isWanted = facts.enabled && facts.hasMethod && isReady;
  return isWanted && isNeeded && isWithinLimit && !isPaused;
}

function isUrgent({ awaitsMoney, runsOutAtMs }: ChargeFacts, nowMs: number): boolean {
  return awaitsMoney || (runsOutAtMs !== null && runsOutAtMs - nowMs <= URGENT_MS);
}

export type ChargeOutcome = 'succeeded' | 'declined' | 'unanswered';
export type AfterCharge = { status: AutoTopUpStatus; declines: number; not_before: number };

/** Returns the next state of the auto top-up. `declines` is the number of consecutive declines before this charge. */
export function afterCharge(outcome: ChargeOutcome, declines: number, nowMs: number): AfterCharge {
  if (outcome === 'succeeded') {
    return { status: 'idle', declines: 0, not_before: nowMs + SUCCESS_PAUSE_MS };
  }
  if (outcome === 'unanswered') {
    return { status: 'failed', declines, not_before: nowMs + UNANSWERED_PAUSE_MS };
  }
  const pauseMs = BACKOFF_MS[declines];
  return pauseMs === undefined
    ? { status: 'suspended', declines: declines + 1, not_before: 0 }
    : { status: 'failed', declines: declines + 1, not_before: nowMs + pauseMs };
}
