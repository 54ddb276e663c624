/**
 * Stops the pods of an API key whose budget is used up, at the computed instant. Starts them again when the budget is
 * raised or the next day begins. The grace period is the same as for a pod that reached its own spend limit.
 */
import { startOfDay } from '#shared/runtime/clock.ts';
import { walletOf } from '../../money/ledger/wallet.service.ts';
import { rentalMinimum } from '../../money/metering/cost.ts';
import { DAY_MS } from '../../money/metering/key-budget.plan.ts';
import {
  endKeyStop,
  keyBudgetAllows,
  keyBudgetOf,
} from '../../money/metering/key-budget.service.ts';
import { isBelowSpendLimit, updateRunway } from '../../money/metering/runway.service.ts';
import { reservedFor } from '../../money/metering/settlement.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { lockRow, lockRows } from '../../platform/database/transactions.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { listLiveOfKey } from '../pods/pod.service.ts';
import { BILLABLE_STATES } from '../pods/pod.state.ts';
import { deferUntilContact } from '../pods/pod-contact.ts';
import { resumePod } from '../pods/pod-stop.ts';
import { type CutOffDeps, stopAndBackUp } from './cut-off.ts';

const STOPPED_MESSAGE =
  'The budget of the API key that rented this pod is used up: raise the budget to start the pod again before it is deleted';

export function keyBudgetHandlers(deps: CutOffDeps) {
  const wakeAll = (pods: readonly Pod[]) => () => {
    for (const { executor_id: id } of pods) deps.wake(id);
  };

  return {
    'key-budget': {
      lock: lockPodsOfKey,
      async run(tx, { subject: keyId, dueAtMs, nowMs }) {
        const pods = await listLiveOfKey(tx, keyId);
        const budget = await keyBudgetOf(tx, keyId, nowMs);
        const reachedAtMs = budget?.reachedAtMs ?? null;
        if (reachedAtMs === null || reachedAtMs > nowMs) {
          const resumed = await resumeStopped(tx, deps, pods, nowMs);
          for (const id of accountsOf(pods)) await updateRunway(tx, id, nowMs);
          return { after: wakeAll(resumed) };
        }
        const running = pods.filter(isBillable);
        const againAtMs = deferUntilContact(running, { plannedMs: reachedAtMs, dueAtMs, nowMs });
        if (againAtMs !== null) return { againAtMs, after: wakeAll(running) };
        const stop = { reason: 'max_spend_reached', atMs: reachedAtMs } as const;
        for (const pod of running) {
          await stopAndBackUp(tx, deps, pod, { ...stop, message: STOPPED_MESSAGE });
        }
        await endKeyStop(tx, keyId);
        for (const id of accountsOf(pods)) await updateRunway(tx, id, nowMs);
        // A pod that is still on its node when the next day begins starts again.
        const isDaily = budget?.limits.dailyUusd != null;
        const nextDay = isDaily ? { againAtMs: startOfDay(nowMs) + DAY_MS } : {};
        return { ...nextDay, after: wakeAll(running) };
      },
    },
  } satisfies DueHandlers;
}

async function lockPodsOfKey(tx: Db, keyId: string): Promise<void> {
  const pods = await listLiveOfKey(tx, keyId);
  await lockRows(
    tx,
    'pods',
    pods.map(({ id }) => id),
  );
  for (const id of accountsOf(pods)) await lockRow(tx, 'accounts', id);
}

/** The account of the key; empty if the key has no pods. */
function accountsOf(pods: readonly Pod[]): string[] {
  return [...new Set(pods.map(({ account_id: id }) => id))];
}

function isBillable({ state }: Pod): boolean {
  return BILLABLE_STATES.some((known) => known === state);
}

/** Starts the pods that a spend limit had stopped, as far as their limits, the key's budgets and the balance allow. */
async function resumeStopped(
  tx: Db,
  deps: CutOffDeps,
  pods: readonly Pod[],
  nowMs: number,
): Promise<Pod[]> {
  const resumed: Pod[] = [];
  for (const pod of pods) {
    if (pod.state !== 'stopped' || pod.reason_code !== 'max_spend_reached') continue;
    if (!(await isBelowSpendLimit(tx, pod.id))) continue;
    if (!(await keyBudgetAllows(tx, pod, nowMs)) || !(await isFunded(tx, pod, nowMs))) continue;
    if (await resumePod(tx, deps, pod)) resumed.push(pod);
  }
  return resumed;
}

async function isFunded(tx: Db, pod: Pod, nowMs: number): Promise<boolean> {
  const { available } = await walletOf(tx, pod.account_id);
  const free = available - (await reservedFor(tx, pod.account_id, nowMs));
  return rentalMinimum(pod.price_uusd_per_gpu_hour, pod.gpu_count) <= free;
}
