/** Sets and changes the limits of API keys. Implements the port of the accounts module for budgets. */
import type { BudgetLimits, KeyBudgets } from '../../accounts/api-keys/api-key.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockRows } from '../../platform/database/transactions.ts';
import { setDue } from '../../platform/schedule/due.ts';
import { keyBudgetQueries } from './key-budget.service.ts';
import { deleteBudget, findBudget, listPodIdsOfKey, putBudget } from './key-budget.store.ts';
import { updateRunway } from './runway.service.ts';
import { settleFirst } from './settlement.service.ts';

type Key = { id: string; accountId: string };

async function write(tx: Db, { id, accountId }: Key, limits: BudgetLimits): Promise<void> {
  const { dailyUusd, totalUusd } = limits;
  if (dailyUusd === null && totalUusd === null) return deleteBudget(tx, id);
  return putBudget(tx, {
    api_key_id: id,
    account_id: accountId,
    daily_uusd: dailyUusd,
    total_uusd: totalUusd,
    stops_at: null,
  });
}

export const keyBudgets: KeyBudgets = {
  ...keyBudgetQueries,

  add: write,

  async change(tx, key, limits, nowMs) {
    await lockRows(tx, 'pods', await listPodIdsOfKey(tx, key.id));
    // Use before the change is charged under the former limits.
    await settleFirst(tx, key.accountId, nowMs);
    const before = await findBudget(tx, key.id);
    const { dailyUusd = before?.daily_uusd ?? null, totalUusd = before?.total_uusd ?? null } =
      limits;
    await write(tx, key, { dailyUusd, totalUusd });
    await updateRunway(tx, key.accountId, nowMs);
    // The handler stops the pods of the key, or starts the pods that the former limits had stopped.
    await setDue(tx, 'key-budget', key.id, nowMs);
  },
};
