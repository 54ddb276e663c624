/** Queries on budgets of API keys, and on the spending of keys. */
import { sql } from 'kysely';
import { CREATION_STATES } from '../../market/pods/pod.state.ts';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { ApiKeyBudget, Db } from '../../platform/database/tables.ts';
import { listBurning } from './burning.store.ts';
import type { Meter, SegmentRow } from './usage.store.ts';

const byKey = prepared((db, { id }: Slots<{ id: string }>) =>
  db.selectFrom('api_key_budgets').selectAll().where('api_key_id', '=', id),
);

/** Returns undefined for a key without limits. */
export async function findBudget(db: Db, keyId: string): Promise<ApiKeyBudget | undefined> {
  return (await byKey(db, { id: keyId })).rows[0];
}

export async function listBudgets(db: Db, keyIds: readonly string[]): Promise<ApiKeyBudget[]> {
  if (keyIds.length === 0) return [];
  return db.selectFrom('api_key_budgets').selectAll().where('api_key_id', 'in', keyIds).execute();
}

const ofAccount = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db.selectFrom('api_key_budgets').selectAll().where('account_id', '=', accountId),
);

export async function listBudgetsOf(db: Db, accountId: string): Promise<ApiKeyBudget[]> {
  return (await ofAccount(db, { accountId })).rows;
}

/** Inserts or replaces the budget of a key. */
export async function putBudget(db: Db, row: ApiKeyBudget): Promise<void> {
  const { daily_uusd, total_uusd, stops_at } = row;
  await db
    .insertInto('api_key_budgets')
    .values(row)
    .onConflict((conflict) =>
      conflict.column('api_key_id').doUpdateSet({ daily_uusd, total_uusd, stops_at }),
    )
    .execute();
}

export async function setStopsAt(db: Db, keyId: string, stopsAtMs: number | null): Promise<void> {
  await db
    .updateTable('api_key_budgets')
    .set({ stops_at: stopsAtMs })
    .where('api_key_id', '=', keyId)
    .execute();
}

export async function deleteBudget(db: Db, keyId: string): Promise<void> {
  await db.deleteFrom('api_key_budgets').where('api_key_id', '=', keyId).execute();
}

export async function deleteBudgetsOf(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('api_key_budgets').where('account_id', '=', accountId).execute();
}

/** Ids of the pods that a key rented and that have not ended. */
export async function listPodIdsOfKey(db: Db, keyId: string): Promise<string[]> {
  const rented = await db
    .selectFrom('pods')
    .select('id')
    .where('created_by_api_key_id', '=', keyId)
    .where('ended_at', 'is', null)
    .execute();
  return rented.map(({ id }) => id);
}

/** Billable meters of the pods that a key of this account rented. */
export async function listBurningOfKey(
  db: Db,
  { api_key_id: keyId, account_id: accountId }: ApiKeyBudget,
): Promise<Meter[]> {
  const ids = new Set(await listPodIdsOfKey(db, keyId));
  return (await listBurning(db, accountId)).filter(({ pod_id: id }) => ids.has(id));
}

/** Prices of the pods of a key that are starting. */
export function listStartingOfKey(
  db: Db,
  keyId: string,
): Promise<{ price_uusd_per_gpu_hour: number; gpu_count: number }[]> {
  return db
    .selectFrom('pods')
    .select(['price_uusd_per_gpu_hour', 'gpu_count'])
    .where('created_by_api_key_id', '=', keyId)
    .where('state', 'in', CREATION_STATES)
    .where('ended_at', 'is', null)
    .execute();
}

/**
 * Micro-dollars that renters paid for the pods of these keys up to the last postings, as `spentBy` computes them, by
 * key. Does not count the pods `except`.
 */
export async function paidForPodsOf(
  db: Db,
  keyIds: readonly string[],
  except: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('pods')
    .innerJoin('usage_meters', 'usage_meters.pod_id', 'pods.id')
    .select([
      'pods.created_by_api_key_id as key_id',
      sql<number>`sum(charged_uusd - case when refunded_uusd > absorbed_uusd
        then refunded_uusd else absorbed_uusd end)`.as('uusd'),
    ])
    .where('pods.created_by_api_key_id', 'in', keyIds)
    .$if(except.length > 0, (query) => query.where('pods.id', 'not in', except))
    .groupBy('pods.created_by_api_key_id')
    .execute();
  return new Map(rows.map(({ key_id, uusd }) => [key_id ?? '', Number(uusd)]));
}

/** Meters of the pods of these keys that were charged after `sinceMs` or are billable now. */
export async function listRecentMeters(
  db: Db,
  keyIds: readonly string[],
  sinceMs: number,
): Promise<(Meter & { key_id: string | null })[]> {
  return db
    .selectFrom('pods')
    .innerJoin('usage_meters', 'usage_meters.pod_id', 'pods.id')
    .selectAll('usage_meters')
    .select('pods.created_by_api_key_id as key_id')
    .where('pods.created_by_api_key_id', 'in', keyIds)
    .where((eb) => eb.or([eb('settled_to_ms', '>', sinceMs), eb('is_billable', '=', 1)]))
    .execute();
}

/** Segments of the pods of these keys that end after `sinceMs` or are open. */
export async function listRecentSegments(
  db: Db,
  keyIds: readonly string[],
  sinceMs: number,
): Promise<SegmentRow[]> {
  return db
    .selectFrom('pods')
    .innerJoin('usage_segments', 'usage_segments.pod_id', 'pods.id')
    .selectAll('usage_segments')
    .where('pods.created_by_api_key_id', 'in', keyIds)
    .where((eb) => eb.or([eb('to_ms', 'is', null), eb('to_ms', '>', sinceMs)]))
    .execute();
}

/** Micro-dollars that these keys transferred to other accounts, by key, in total and since `sinceMs`. */
export async function transferredBy(
  db: Db,
  keyIds: readonly string[],
  sinceMs: number,
): Promise<ReadonlyMap<string, { allUusd: number; sinceUusd: number }>> {
  const rows = await db
    .selectFrom('ledger_groups')
    .innerJoin('transfers', 'transfers.group_id', 'ledger_groups.id')
    .select([
      'ledger_groups.actor',
      sql<number>`sum(amount_uusd)`.as('all_uusd'),
      sql<number>`sum(case when at_ms >= ${sinceMs} then amount_uusd else 0 end)`.as('since_uusd'),
    ])
    .where('cause_type', '=', 'transfer')
    .where('actor', 'in', keyIds.map(actorOfKey))
    .groupBy('ledger_groups.actor')
    .execute();
  return new Map(
    rows.map(({ actor, all_uusd, since_uusd }) => [
      actor.slice(ACTOR_PREFIX.length),
      { allUusd: Number(all_uusd), sinceUusd: Number(since_uusd) },
    ]),
  );
}

/** Prefix of the actor in postings that an API key caused, followed by the key's id. */
const ACTOR_PREFIX = 'api_key:';
const actorOfKey = (keyId: string) => `${ACTOR_PREFIX}${keyId}`;
