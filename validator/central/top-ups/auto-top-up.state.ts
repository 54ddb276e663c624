/** When an auto top-up charges, and what becomes of it after a charge (marketplace reference 1.6, 6). Pure. */

export const AUTO_TOP_UP_STATUSES = ['idle', 'charging', 'failed', 'suspended'] as const;
export type AutoTopUpStatus = (typeof AUTO_TOP_UP_STATUSES)[number];

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** After the first, second, … decline in a row; with the one after the last it is suspended. */
const BACK_OFF_MS: readonly number[] = [10 * MINUTE_MS, HOUR_MS];
/** After a processor that did not answer for a day. */
const UNANSWERED_PAUSE_MS = HOUR_MS;

export type ChargeFacts = {
  enabled: boolean;
  hasMethod: boolean;
  status: AutoTopUpStatus;
  notBeforeMs: number;
  thresholdUusd: number;
  amountUusd: number;
  monthlyLimitUusd: number | null;
  /** Micro-dollars charged in this month, those in flight included. */
  monthChargedUusd: number;
  available: number;
  burnPerHour: number;
  /** Pods stand still for want of money, and would go on. */
  awaitsMoney: boolean;
};

/** At the threshold itself, too; never while nothing runs or waits to. */
export function shouldCharge(facts: ChargeFacts, nowMs: number): boolean {
  const { monthlyLimitUusd: limit, monthChargedUusd: charged, amountUusd } = facts;
  const isReady = facts.status === 'idle' || facts.status === 'failed';
  const isSpent = facts.burnPerHour > 0 || facts.awaitsMoney;
  const isNeeded = isSpent && facts.available <= facts.thresholdUusd;
  const isWithinLimit = limit === null || charged + amountUusd <= limit;
  const isWanted = facts.enabled && facts.hasMethod && isReady;
  return isWanted && isNeeded && isWithinLimit && nowMs >= facts.notBeforeMs;
}

export type ChargeOutcome = 'succeeded' | 'declined' | 'unanswered';
export type AfterCharge = { status: AutoTopUpStatus; declines: number; not_before: number };

/** `declines`: in a row before this charge. */
export function afterCharge(outcome: ChargeOutcome, declines: number, nowMs: number): AfterCharge {
  if (outcome === 'succeeded') return { status: 'idle', declines: 0, not_before: 0 };
  if (outcome === 'unanswered') {
    return { status: 'failed', declines, not_before: nowMs + UNANSWERED_PAUSE_MS };
  }
  const pauseMs = BACK_OFF_MS[declines];
  return pauseMs === undefined
    ? { status: 'suspended', declines: declines + 1, not_before: 0 }
    : { status: 'failed', declines: declines + 1, not_before: nowMs + pauseMs };
}
