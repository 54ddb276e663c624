/** When an auto top-up charges, and what becomes of it after a charge (marketplace reference 1.6, 6). Pure. */

export const AUTO_TOP_UP_STATUSES = ['idle', 'charging', 'failed', 'suspended'] as const;
export type AutoTopUpStatus = (typeof AUTO_TOP_UP_STATUSES)[number];

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** After the first, second, … decline in a row, the first within the grace of pods (GRACE_MS); with the one after the last it is suspended. */
const BACK_OFF_MS: readonly number[] = [5 * MINUTE_MS, HOUR_MS];
/** After a charge that succeeded, unless pods are about to stop: what tops up is no drain for a stolen card. */
const SUCCESS_PAUSE_MS = 10 * MINUTE_MS;
/** Pods that stop sooner than that do not wait for the pause. */
const URGENT_MS = 15 * MINUTE_MS;
/** In a calendar month where the renter named no limit; one charge at least. */
const DEFAULT_MONTHLY_LIMIT_UUSD = 1_000_000_000;
/** After a processor that did not answer for a day. */
const UNANSWERED_PAUSE_MS = HOUR_MS;

export type ChargeFacts = {
  enabled: boolean;
  hasMethod: boolean;
  status: AutoTopUpStatus;
  notBeforeMs: number;
  thresholdUusd: number;
  amountUusd: number;
  /** Null: that of whoever names none. */
  monthlyLimitUusd: number | null;
  /** Micro-dollars charged in this month, those in flight included. */
  monthChargedUusd: number;
  available: number;
  burnPerHour: number;
  /** When pods stop as things are; null: never. */
  runsOutAtMs: number | null;
  /** Pods stand still for want of money, and would go on. */
  awaitsMoney: boolean;
};

/** At the threshold itself, too; never while nothing runs or waits to. */
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

/** `declines`: in a row before this charge. */
export function afterCharge(outcome: ChargeOutcome, declines: number, nowMs: number): AfterCharge {
  if (outcome === 'succeeded') {
    return { status: 'idle', declines: 0, not_before: nowMs + SUCCESS_PAUSE_MS };
  }
  if (outcome === 'unanswered') {
    return { status: 'failed', declines, not_before: nowMs + UNANSWERED_PAUSE_MS };
  }
  const pauseMs = BACK_OFF_MS[declines];
  return pauseMs === undefined
    ? { status: 'suspended', declines: declines + 1, not_before: 0 }
    : { status: 'failed', declines: declines + 1, not_before: nowMs + pauseMs };
}
