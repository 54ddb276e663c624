/**
 * Budgets of API keys: the amount that a key has spent, whether a request is within its budgets, and when its running
 * pods stop. Charges of a pod count for the key that rented it, and transfers for the key that made them.
 */
import { startOfDay } from '#shared/runtime/clock.ts';
import type { BudgetLimits, KeyBudgets } from '../../accounts/api-keys/api-key.service.ts';
import { BudgetExceeded } from '../../accounts/api-keys/budget-refusal.service.ts';
import type { ApiKeyBudget, Db, Pod } from '../../platform/database/tables.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { costUntil, MINIMUM_RUNTIME_MS, rentalMinimum } from './cost.ts';
import {
  budgetReachedAt,
  chargedSince,
  type Limits,
  NOTHING_SPENT,
  type Spent,
} from './key-budget.plan.ts';
import {
  deleteBudgetsOf,
  findBudget,
  listBudgets,
  listBudgetsOf,
  listBurningOfKey,
  listRecentMeters,
  listRecentSegments,
  listStartingOfKey,
  paidForPodsOf,
  setStopsAt,
  transferredBy,
} from './key-budget.store.ts';
import { meteredPods } from './metered.service.ts';
import { burningOf } from './runway.ts';
import type { Meter } from './usage.store.ts';

/** Micro-dollars that each of these keys has spent up to now. Keys without spending are omitted. */
export async function spentByKeys(
  db: Db,
  keyIds: readonly string[],
  nowMs: number,
): Promise<Map<string, Spent>> {
  if (keyIds.length === 0) return new Map();
  const recent = await listRecentMeters(db, keyIds, startOfDay(nowMs));
  const running = recent.filter(({ is_billable: billable }) => billable === 1);
  const podIds = running.map(({ pod_id: id }) => id);
  return spentWith(db, keyIds, nowMs, await meteredPods(db, podIds, nowMs));
}

/** Same as `spentByKeys`, with these meters instead of the stored meters of the same pods. */
async function spentWith(
  db: Db,
  keyIds: readonly string[],
  nowMs: number,
  metered: ReadonlyMap<string, Meter>,
): Promise<Map<string, Spent>> {
  const spent = new Map<string, Spent>();
  const dayMs = startOfDay(nowMs);
  const add = (keyId: string, more: Spent) => {
    const { todayUusd, totalUusd } = spent.get(keyId) ?? NOTHING_SPENT;
    spent.set(keyId, {
      todayUusd: todayUusd + more.todayUusd,
      totalUusd: totalUusd + more.totalUusd,
    });
  };
  for (const [keyId, totalUusd] of await paidForPodsOf(db, keyIds, [...metered.keys()])) {
    add(keyId, { todayUusd: 0, totalUusd });
  }
  const segments = Map.groupBy(await listRecentSegments(db, keyIds, dayMs), (row) => row.pod_id);
  for (const { key_id: keyId, ...stored } of await listRecentMeters(db, keyIds, dayMs)) {
    const after = metered.get(stored.pod_id);
    const meter = after ?? stored;
    const chargedUusd = chargedSince(meter, segments.get(meter.pod_id) ?? [], dayMs);
    // Refunds and absorbed charges count as reductions of the pod's latest time.
    const returnedUusd = Math.max(meter.refunded_uusd, meter.absorbed_uusd);
    const todayUusd = chargedUusd - Math.min(returnedUusd, Math.max(0, chargedUusd));
    const totalUusd = after === undefined ? 0 : meter.charged_uusd - returnedUusd;
    add(keyId ?? '', { todayUusd, totalUusd });
  }
  for (const [keyId, { allUusd, sinceUusd }] of await transferredBy(db, keyIds, dayMs)) {
    add(keyId, { todayUusd: sinceUusd, totalUusd: allUusd });
  }
  return spent;
}

/**
 * Micro-dollars that a key has spent up to the last posting of each pod, for computations that add the cost of the
 * same pods since then.
 */
async function postedBy(db: Db, keyId: string, nowMs: number): Promise<Spent> {
  return (await spentWith(db, [keyId], nowMs, new Map())).get(keyId) ?? NOTHING_SPENT;
}

/** Micro-dollars that the pods of a key need for their next 15 minutes, in addition to earlier charges. */
async function reservedForKey(db: Db, budget: ApiKeyBudget, nowMs: number): Promise<number> {
  let reserved = 0;
  for (const meter of await listBurningOfKey(db, budget)) {
    const costUusd = costUntil(meter, nowMs + MINIMUM_RUNTIME_MS).uusd;
    reserved += Math.max(0, costUusd - meter.charged_uusd);
  }
  for (const pod of await listStartingOfKey(db, budget.api_key_id)) {
    reserved += rentalMinimum(pod.price_uusd_per_gpu_hour, pod.gpu_count);
  }
  return reserved;
}

/**
 * Throws `API_KEY_BUDGET_EXCEEDED` if a budget of the key does not cover `amountUusd` in addition to the needs of the
 * key's pods. The caller has locked the account, so that concurrent requests of the key are checked one after the
 * other. A null key and a key without limits pass.
 */
export async function requireKeyBudget(
  tx: Db,
  keyId: string | null,
  amountUusd: number,
  nowMs: number,
): Promise<void> {
  const excess = keyId === null ? null : await excessOf(tx, keyId, amountUusd, nowMs);
  if (excess !== null) throw excess;
}

/** Returns true if the budgets of the key that rented the pod cover another 15 minutes of the pod. */
export async function keyBudgetAllows(tx: Db, pod: Pod, nowMs: number): Promise<boolean> {
  const { created_by_api_key_id: keyId, price_uusd_per_gpu_hour: price, gpu_count: gpus } = pod;
  if (keyId === null) return true;
  return (await excessOf(tx, keyId, rentalMinimum(price, gpus), nowMs)) === null;
}

async function excessOf(
  tx: Db,
  keyId: string,
  amountUusd: number,
  nowMs: number,
): Promise<BudgetExceeded | null> {
  const budget = await findBudget(tx, keyId);
  if (budget === undefined) return null;
  const spent = await postedBy(tx, keyId, nowMs);
  const reservedUusd = await reservedForKey(tx, budget, nowMs);
  const windows = [
    { window: 'day', budgetUusd: budget.daily_uusd, spentUusd: Math.max(0, spent.todayUusd) },
    { window: 'total', budgetUusd: budget.total_uusd, spentUusd: spent.totalUusd },
  ] as const;
  for (const { window, budgetUusd, spentUusd } of windows) {
    if (budgetUusd === null || spentUusd + reservedUusd + amountUusd <= budgetUusd) continue;
    return new BudgetExceeded({ keyId, window, amountUusd, budgetUusd, spentUusd, reservedUusd });
  }
  return null;
}

/**
 * Throws `API_KEY_BUDGET_EXCEEDED` for a key with a budget, because an auto top-up charges `amountUusd` repeatedly
 * without end, which no budget covers.
 */
export async function refuseBudgetedKey(
  db: Db,
  keyId: string | null,
  amountUusd: number,
  nowMs: number,
): Promise<void> {
  const budget = keyId === null ? undefined : await findBudget(db, keyId);
  if (keyId === null || budget === undefined) return;
  const spent = (await spentByKeys(db, [keyId], nowMs)).get(keyId) ?? NOTHING_SPENT;
  const isDaily = budget.daily_uusd !== null;
  throw new BudgetExceeded({
    keyId,
    window: isDaily ? 'day' : 'total',
    amountUusd,
    budgetUusd: budget.daily_uusd ?? budget.total_uusd ?? 0,
    spentUusd: isDaily ? Math.max(0, spent.todayUusd) : spent.totalUusd,
    reservedUusd: 0,
  });
}

/** Limits of a key, and the time at which its running pods use them up; null if never. */
export type KeyBudget = { accountId: string; limits: Limits; reachedAtMs: number | null };

/** Returns the limits of a key and the time at which they stop its pods; undefined for a key without limits. */
export async function keyBudgetOf(
  db: Db,
  keyId: string,
  nowMs: number,
): Promise<KeyBudget | undefined> {
  const budget = await findBudget(db, keyId);
  if (budget === undefined) return undefined;
  return {
    accountId: budget.account_id,
    limits: limitsOf(budget),
    reachedAtMs: await reachedAt(db, budget, nowMs),
  };
}

/**
 * Time at which the first budget is used up; null if never. A stop that is due belongs to the day on which it was due.
 */
async function reachedAt(db: Db, budget: ApiKeyBudget, nowMs: number): Promise<number | null> {
  const burning = await listBurningOfKey(db, budget);
  if (burning.length === 0) return null;
  const asOfMs = Math.min(nowMs, budget.stops_at ?? nowMs);
  const spent = await postedBy(db, budget.api_key_id, asOfMs);
  return budgetReachedAt(limitsOf(budget), spent, burning.map(burningOf), asOfMs);
}

/**
 * Reschedules the stops of the account's keys with limits. `updateRunway` calls it in every transaction that changes
 * the account's billable pods. A stop that is already due is unchanged, because its handler acts on it.
 */
export async function updateKeyStops(tx: Db, accountId: string, nowMs: number): Promise<void> {
  for (const budget of await listBudgetsOf(tx, accountId)) {
    if (budget.stops_at === null || budget.stops_at > nowMs) await updateStop(tx, budget, nowMs);
  }
}

async function updateStop(tx: Db, budget: ApiKeyBudget, nowMs: number): Promise<void> {
  const keyId = budget.api_key_id;
  const atMs = await reachedAt(tx, budget, nowMs);
  if (atMs !== budget.stops_at) await setStopsAt(tx, keyId, atMs);
  if (atMs === null) await clearDue(tx, 'key-budget', keyId);
  else await setDue(tx, 'key-budget', keyId, atMs);
}

/** Marks a stop as done. Call `updateRunway` afterwards. */
export function endKeyStop(tx: Db, keyId: string): Promise<void> {
  return setStopsAt(tx, keyId, null);
}

/** Deletes the budgets of an account that is being removed. */
export const deleteKeyBudgets = deleteBudgetsOf;

/** Queries that the budgets port of API keys needs. */
export const keyBudgetQueries: Pick<KeyBudgets, 'limitsOf' | 'spentBy'> = {
  async limitsOf(db, keyIds) {
    const rows = await listBudgets(db, keyIds);
    return new Map(rows.map((row) => [row.api_key_id, limitsOf(row)]));
  },
  async spentBy(db, keyIds, nowMs) {
    const spent = await spentByKeys(db, keyIds, nowMs);
    for (const [keyId, { todayUusd, totalUusd }] of spent) {
      spent.set(keyId, { todayUusd: Math.max(0, todayUusd), totalUusd });
    }
    return spent;
  },
};

function limitsOf({ daily_uusd, total_uusd }: ApiKeyBudget): BudgetLimits {
  return { dailyUusd: daily_uusd, totalUusd: total_uusd };
}
