/**
 * Pods that are stopped because the balance, their spend limit or their idle limit is used up. A stopped pod keeps its
 * data during a grace period. Then the pod is removed, unless it was started again.
 */
import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { invalidField } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { requireRentalFunds } from '../../money/balance/balance.service.ts';
import { minimumCharge, type Rate } from '../../money/metering/cost.ts';
import { keyBudgetAllows } from '../../money/metering/key-budget.service.ts';
import { isBelowSpendLimit } from '../../money/metering/runway.service.ts';
import {
  type SettledAccount,
  settleFirst,
  spendLimitChanged,
} from '../../money/metering/settlement.service.ts';
import { graceMs } from '../../money/metering/usage.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { wirePhase, wireStatus } from './pod.state.ts';
import { movePod } from './pod.store.ts';
import { billableUntil } from './pod-contact.ts';
import { recordPodEvent, SYSTEM_EVENT } from './pod-events.ts';
import { cancelIdleStop, resetIdle } from './pod-idle.ts';

type Deps = { clock: Clock; random: Random };

export type StopReason = 'balance_exhausted' | 'max_spend_reached' | 'idle_shutdown';

/** `message` replaces the default text for the renter. */
export type PodStop = { reason: StopReason; atMs: number; message?: string };

const MESSAGES: Record<StopReason, string> = {
  balance_exhausted: 'The balance is used up: top up to start the pod again before it is deleted',
  max_spend_reached:
    'max_spend_usd is reached: raise this limit to start the pod again before it is deleted',
  idle_shutdown:
    'The pod was unused for idle_shutdown_minutes: set this limit again to start the pod before it is deleted',
};

/** Throws `validation_error` for a `max_spend_usd` below the minimum charge of the pod. Null means no limit. */
export function requireSpendLimit(limitUusd: number | null, rate: Rate): void {
  const least = minimumCharge(rate);
  if (limitUusd === null || limitUusd >= least) return;
  const usd = microToUsd(least);
  const problem = `Must be at least ${usd}, the price of one minute, which is the minimum charge`;
  throw invalidField('body.max_spend_usd', problem);
}

/** Longest grace period of a stopped pod. */
export const GRACE_MS = 600_000;
/** Time after which a stopped pod is removed even if its last backup still runs. */
const LONGEST_BACKUP_MS = 3_600_000;

/**
 * Charges the pod until `atMs`, which may be in the past; the grace period begins now. Returns false if the pod does
 * not run.
 */
export async function stopPod(
  tx: Db,
  deps: Deps,
  pod: Pod,
  { reason, atMs, message = MESSAGES[reason] }: PodStop,
): Promise<boolean> {
  const nowMs = deps.clock.now();
  const change = {
    phase: wirePhase('stopped') ?? '',
    reason_code: reason,
    message,
    updated_at: nowMs,
  };
  const metered = {
    atMs: billableUntil(pod, Math.min(atMs, nowMs)),
    cause: reason,
    leavesRunway: true,
  };
  const keptMs = await graceMs(tx, pod.id, { atMs: metered.atMs, fullMs: GRACE_MS });
  if (!(await movePod(tx, pod.id, 'stopped', change, metered))) return false;
  await setDue(tx, 'grace-end', pod.id, nowMs + keptMs);
  await setDue(tx, 'grace-limit', pod.id, nowMs + LONGEST_BACKUP_MS);
  await recordPodEvent(tx, deps, pod, {
    ...SYSTEM_EVENT,
    toStatus: wireStatus('stopped'),
    reason,
    facts: {
      detail: 'stopped',
      kept_until: naiveUtc(nowMs + keptMs),
      stopped_at: naiveUtc(atMs),
    },
  });
  return true;
}

/** Starts a stopped pod again. Returns false if the pod is not stopped. */
export async function resumePod(tx: Db, deps: Deps, pod: Pod): Promise<boolean> {
  const nowMs = deps.clock.now();
  const change = {
    phase: wirePhase('starting') ?? '',
    reason_code: null,
    message: '',
    updated_at: nowMs,
    ...resetIdle(nowMs),
  };
  if (!(await movePod(tx, pod.id, 'starting', change, { from: ['stopped'] }))) return false;
  await cancelGraceEnd(tx, pod.id);
  await recordPodEvent(tx, deps, pod, {
    ...SYSTEM_EVENT,
    toStatus: wireStatus('starting'),
    facts: { detail: 'resumed' },
  });
  return true;
}

export async function cancelGraceEnd(tx: Db, podId: string): Promise<void> {
  await clearDue(tx, 'grace-end', podId);
  await clearDue(tx, 'grace-limit', podId);
}

/**
 * Applies a new `max_spend_usd`: moves the stop, or starts a pod that the old limit had stopped. `pod` is the row
 * before the change; its account was settled before the row changed.
 */
export async function applySpendLimit(
  tx: Db,
  deps: Deps,
  settled: SettledAccount,
  pod: Pod,
): Promise<void> {
  await spendLimitChanged(tx, settled, pod.id);
  await resumeIfStoppedBy(tx, deps, pod, 'max_spend_reached');
}

/**
 * Applies a new `idle_shutdown_minutes`. The minutes count from now on, and a pod that the old limit had stopped starts
 * again.
 */
export async function applyIdleLimit(tx: Db, deps: Deps, pod: Pod): Promise<void> {
  await cancelIdleStop(tx, pod.id);
  await resumeIfStoppedBy(tx, deps, pod, 'idle_shutdown');
}

/**
 * Resumes a pod that was stopped for `reason`. Does nothing while a budget of the pod's API key is used up. Throws
 * `insufficient_balance` if the account has less than a rental of the pod requires.
 */
async function resumeIfStoppedBy(tx: Db, deps: Deps, pod: Pod, reason: StopReason): Promise<void> {
  if (pod.state !== 'stopped' || pod.reason_code !== reason) return;
  if (!(await isBelowSpendLimit(tx, pod.id))) return;
  const settled = await settleFirst(tx, pod.account_id, deps.clock.now());
  if (!(await keyBudgetAllows(tx, pod, deps.clock.now()))) return;
  requireRentalFunds(settled, pod.price_uusd_per_gpu_hour, pod.gpu_count, 'starting it again');
  await resumePod(tx, deps, pod);
}
