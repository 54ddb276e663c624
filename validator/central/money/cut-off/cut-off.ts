/**
 * What happens when money runs out: warnings, the stop at the computed instant, the grace, the end (marketplace
 * reference 2.3.7). Late, everything counts from its own time all the same.
 */

import { listLiveOf } from '../../market/pods/pod.service.ts';
import { BILLABLE_STATES } from '../../market/pods/pod.state.ts';
import { findAnyPod } from '../../market/pods/pod-access.ts';
import { deferUntilContact } from '../../market/pods/pod-contact.ts';
import { beginRemoval, REMOVAL_REASONS } from '../../market/pods/pod-removal.ts';
import { resumePod, type StopReason, stopPod } from '../../market/pods/pod-stop.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { lockRow, lockRows } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { dueWarning, nextWarningAt } from '../../platform/schedule/warnings.ts';
import { walletOf } from '../ledger/wallet.service.ts';
import { rentalFloor } from '../metering/rental-floor.ts';
import { accountRunsOutAt, runwayChanged } from '../metering/runway.service.ts';
import { keptFor } from '../metering/settled-first.ts';
import { capReachedAt } from '../metering/spend-limit.ts';
import { type TellDeps, tellExhausted, tellRunningOut } from './cut-off.tell.ts';

/** A last backup is looked at this often. */
const BACKUP_LOOK_MS = 30_000;

export type CutOffDeps = TellDeps & {
  /** Begins a backup by the pod's own schedule; false when none could begin. */
  lastBackup(tx: Db, pod: Pod): Promise<boolean>;
  isBackingUp(tx: Db, podId: string): Promise<boolean>;
  /** Has the sync look at this executor at once. */
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
        if (dueWarning(atMs, nowMs) !== null) await tellRunningOut(tx, deps, subject, atMs);
        const next = nextWarningAt(atMs, nowMs);
        return next === null ? undefined : { againAtMs: next };
      },
    },
    'cut-off': {
      lock: (tx, accountId) => lockWithPods(tx, [accountId]),
      async run(tx, { subject, dueAtMs, nowMs }) {
        const atMs = await accountRunsOutAt(tx, subject);
        if (atMs === null) return undefined;
        // There is more than there was when it was set.
        if (atMs > nowMs) return { againAtMs: atMs };
        const pods = await billablePods(tx, subject);
        const againAtMs = deferUntilContact(pods, { plannedMs: atMs, dueAtMs, nowMs });
        if (againAtMs !== null) return { againAtMs, after: wakeAll(pods) };
        const stopped: Pod[] = [];
        for (const pod of pods) {
          if (await stopAndSave(tx, deps, pod, { reason: 'balance_exhausted', atMs }))
            stopped.push(pod);
        }
        await tellExhausted(tx, deps, subject, stopped);
        await runwayChanged(tx, subject, nowMs);
        return { after: wakeAll(stopped) };
      },
    },
    'spend-cap': {
      lock: lockPod,
      async run(tx, { subject, dueAtMs, nowMs }) {
        const pod = await findAnyPod(tx, subject);
        const atMs = await capReachedAt(tx, subject);
        if (pod === undefined || atMs === null) return undefined;
        if (atMs > nowMs) return { againAtMs: atMs };
        const againAtMs = deferUntilContact([pod], { plannedMs: atMs, dueAtMs, nowMs });
        if (againAtMs !== null) return { againAtMs, after: wakeAll([pod]) };
        if (!(await stopAndSave(tx, deps, pod, { reason: 'max_spend_reached', atMs })))
          return undefined;
        await runwayChanged(tx, pod.account_id, nowMs);
        return { after: wakeAll([pod]) };
      },
    },
    'grace-end': {
      lock: lockPod,
      async run(tx, { subject, nowMs }) {
        const pod = await findAnyPod(tx, subject);
        if (pod?.state !== 'stopped') return undefined;
        if (await deps.isBackingUp(tx, subject)) return { againAtMs: nowMs + BACKUP_LOOK_MS };
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

/** A pod and its account. */
export async function lockPod(tx: Db, podId: string): Promise<void> {
  await lockRow(tx, 'pods', podId);
  const pod = await findAnyPod(tx, podId);
  if (pod !== undefined) await lockRow(tx, 'accounts', pod.account_id);
}

/** Stops a pod that runs, and begins its last backup; false when it does not run. */
export async function stopAndSave(
  tx: Db,
  deps: CutOffDeps,
  pod: Pod,
  stop: { reason: StopReason; atMs: number },
): Promise<boolean> {
  if (!(await stopPod(tx, deps, pod, stop))) return false;
  await deps.lastBackup(tx, { ...pod, state: 'stopped' });
  return true;
}

/** Locks accounts with all their pods, pods before accounts (`lockRow`): for who brings money to them. */
export async function lockWithPods(tx: Db, accountIds: readonly string[]): Promise<void> {
  const podIds = [];
  for (const id of accountIds) podIds.push(...(await listLiveOf(tx, id)).map((pod) => pod.id));
  await lockRows(tx, 'pods', podIds);
  await lockRows(tx, 'accounts', accountIds);
}

async function billablePods(tx: Db, accountId: string): Promise<Pod[]> {
  const pods = await listLiveOf(tx, accountId);
  return pods.filter(({ state }) => BILLABLE_STATES.some((known) => known === state));
}

/** Stopped because the money ran out, and not yet deleted. */
async function listWithoutMoney(tx: Db, accountId: string): Promise<Pod[]> {
  return (await listLiveOf(tx, accountId)).filter(
    ({ state, reason_code: reason }) => state === 'stopped' && reason === 'balance_exhausted',
  );
}

/** Whether money that came now would start pods again. */
export async function hasPodsWithoutMoney(tx: Db, accountId: string): Promise<boolean> {
  return (await listWithoutMoney(tx, accountId)).length > 0;
}

/**
 * Money has come to an account: pods that were stopped for want of it go on, the oldest first, as far as it covers
 * what a rental of each would ask for, beside what its other pods need. To be called in the transaction that brings it;
 * returns the executors to wake.
 */
export async function fundsAdded(
  tx: Db,
  deps: Pick<CutOffDeps, 'clock' | 'random'>,
  accountId: string,
): Promise<string[]> {
  const executorIds: string[] = [];
  const stopped = await listWithoutMoney(tx, accountId);
  const { available } = await walletOf(tx, accountId);
  let free = available - (await keptFor(tx, accountId, deps.clock.now()));
  for (const pod of stopped) {
    const floor = rentalFloor(pod.price_uusd_per_gpu_hour, pod.gpu_count);
    if (floor > free || !(await resumePod(tx, deps, pod))) continue;
    free -= floor;
    executorIds.push(pod.executor_id);
  }
  await runwayChanged(tx, accountId, deps.clock.now());
  return executorIds;
}
