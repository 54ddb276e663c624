/**
 * Acts on pods when money runs out: warns, stops the pods at the computed instant, waits for the grace period, and
 * removes the pods. If the schedule runs late, pods are charged only up to the instant that was due. Also restarts pods
 * when money arrives.
 */

import type { AccountPods } from '../../money/account-pods.ts';
import { walletOf } from '../../money/ledger/wallet.service.ts';
import { rentalMinimum } from '../../money/metering/cost.ts';
import { keyBudgetAllows } from '../../money/metering/key-budget.service.ts';
import {
  accountRunsOutAt,
  spendLimitReachedAt,
  updateRunway,
} from '../../money/metering/runway.service.ts';
import { reservedFor } from '../../money/metering/settlement.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { lockRow, lockRows } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { dueWarning, nextWarningAt } from '../../platform/schedule/warnings.ts';
import { listLiveOf } from '../pods/pod.service.ts';
import { BILLABLE_STATES } from '../pods/pod.state.ts';
import { findAnyPod } from '../pods/pod-access.ts';
import { deferUntilContact } from '../pods/pod-contact.ts';
import { beginRemoval, REMOVAL_REASONS } from '../pods/pod-removal.ts';
import { type PodStop, resumePod, stopPod } from '../pods/pod-stop.ts';
import { type NotifyDeps, notifyExhausted, notifyRunningOut } from './cut-off-notices.ts';

/** Interval of checks whether a last backup has ended. */
const BACKUP_CHECK_MS = 30_000;

export type CutOffDeps = NotifyDeps & {
  /** Begins a backup according to the pod's schedule. Returns false if no backup could begin. */
  lastBackup(tx: Db, pod: Pod): Promise<boolean>;
  isBackingUp(tx: Db, podId: string): Promise<boolean>;
  /** Makes the sync contact this executor at once. */
  wake(executorId: string): void;
};

export function cutOffHandlers(deps: CutOffDeps) {
  const wakeAll = (pods: readonly Pod[]) => () => {
    for (const { executor_id: id } of pods) deps.wake(id);
  };

  async function removeStopped(tx: Db, pod: Pod) {
    const reason = REMOVAL_REASONS.find((known) => known === pod.reason_code);
    const request = { actor: SYSTEM_ACTOR, reason: reason ?? 'balance_exhausted' } as const;
    await beginRemoval(tx, deps, pod, request);
    return { after: wakeAll([pod]) };
  }

  return {
    'balance-warning': {
      lock: (tx, accountId) => lockRow(tx, 'accounts', accountId),
      async run(tx, { subject, nowMs }) {
        const atMs = await accountRunsOutAt(tx, subject);
        if (atMs === null) return undefined;
        if (dueWarning(atMs, nowMs) !== null) await notifyRunningOut(tx, deps, subject, atMs);
        const next = nextWarningAt(atMs, nowMs);
        return next === null ? undefined : { againAtMs: next };
      },
    },
    'cut-off': {
      lock: (tx, accountId) => lockWithPods(tx, [accountId]),
      async run(tx, { subject, dueAtMs, nowMs }) {
        const atMs = await accountRunsOutAt(tx, subject);
        if (atMs === null) return undefined;
        // Money was added after this work was scheduled.
        if (atMs > nowMs) return { againAtMs: atMs };
        const pods = await billablePods(tx, subject);
        const againAtMs = deferUntilContact(pods, { plannedMs: atMs, dueAtMs, nowMs });
        if (againAtMs !== null) return { againAtMs, after: wakeAll(pods) };
        const stopped: Pod[] = [];
        for (const pod of pods) {
          if (await stopAndBackUp(tx, deps, pod, { reason: 'balance_exhausted', atMs }))
            stopped.push(pod);
        }
        await notifyExhausted(tx, deps, subject, stopped);
        await updateRunway(tx, subject, nowMs);
        return { after: wakeAll(stopped) };
      },
    },
    'spend-cap': {
      lock: lockPod,
      async run(tx, { subject, dueAtMs, nowMs }) {
        const pod = await findAnyPod(tx, subject);
        const atMs = await spendLimitReachedAt(tx, subject);
        if (pod === undefined || atMs === null) return undefined;
        if (atMs > nowMs) return { againAtMs: atMs };
        const againAtMs = deferUntilContact([pod], { plannedMs: atMs, dueAtMs, nowMs });
        if (againAtMs !== null) return { againAtMs, after: wakeAll([pod]) };
        if (!(await stopAndBackUp(tx, deps, pod, { reason: 'max_spend_reached', atMs })))
          return undefined;
        await updateRunway(tx, pod.account_id, nowMs);
        return { after: wakeAll([pod]) };
      },
    },
    'grace-end': {
      lock: lockPod,
      async run(tx, { subject, nowMs }) {
        const pod = await findAnyPod(tx, subject);
        if (pod?.state !== 'stopped') return undefined;
        if (await deps.isBackingUp(tx, subject)) return { againAtMs: nowMs + BACKUP_CHECK_MS };
        return removeStopped(tx, pod);
      },
    },
    'grace-limit': {
      lock: lockPod,
      async run(tx, { subject }) {
        const pod = await findAnyPod(tx, subject);
        return pod?.state === 'stopped' ? removeStopped(tx, pod) : undefined;
      },
    },
  } satisfies DueHandlers;
}

/** Locks a pod, then its account. */
export async function lockPod(tx: Db, podId: string): Promise<void> {
  await lockRow(tx, 'pods', podId);
  const pod = await findAnyPod(tx, podId);
  if (pod !== undefined) await lockRow(tx, 'accounts', pod.account_id);
}

/** Stops a running pod and begins its last backup. Returns false if the pod does not run. */
export async function stopAndBackUp(
  tx: Db,
  deps: CutOffDeps,
  pod: Pod,
  stop: PodStop,
): Promise<boolean> {
  if (!(await stopPod(tx, deps, pod, stop))) return false;
  await deps.lastBackup(tx, { ...pod, state: 'stopped' });
  return true;
}

async function lockWithPods(tx: Db, accountIds: readonly string[]): Promise<void> {
  const podIds = [];
  for (const id of accountIds) podIds.push(...(await listLiveOf(tx, id)).map((pod) => pod.id));
  await lockRows(tx, 'pods', podIds);
  await lockRows(tx, 'accounts', accountIds);
}

async function billablePods(tx: Db, accountId: string): Promise<Pod[]> {
  const pods = await listLiveOf(tx, accountId);
  return pods.filter(({ state }) => BILLABLE_STATES.some((known) => known === state));
}

/** Returns pods that were stopped because the money ran out, and that are not deleted yet. */
async function listAwaitingMoney(tx: Db, accountId: string): Promise<Pod[]> {
  return (await listLiveOf(tx, accountId)).filter(
    ({ state, reason_code: reason }) => state === 'stopped' && reason === 'balance_exhausted',
  );
}

/**
 * Implements the port through which the money module reaches pods: locks, restarts and checks the pods of accounts that
 * receive money.
 */
export function createAccountPods(deps: Pick<CutOffDeps, 'clock' | 'random'>): AccountPods {
  return {
    lock: lockWithPods,

    async restart(tx, accountId) {
      const nowMs = deps.clock.now();
      const stopped = await listAwaitingMoney(tx, accountId);
      const { available } = await walletOf(tx, accountId);
      let free = available - (await reservedFor(tx, accountId, nowMs));
      for (const pod of stopped) {
        const minimum = rentalMinimum(pod.price_uusd_per_gpu_hour, pod.gpu_count);
        if (minimum > free || !(await keyBudgetAllows(tx, pod, nowMs))) continue;
        if (!(await resumePod(tx, deps, pod))) continue;
        free -= minimum;
      }
      await updateRunway(tx, accountId, deps.clock.now());
    },

    awaitMoney: async (tx, accountId) => (await listAwaitingMoney(tx, accountId)).length > 0,
  };
}
