/** Queries of the api_keys table. Deleted keys remain as rows, for events that name them, but no query finds them. */
import type { Insertable, Updateable } from 'kysely';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { ApiKeysTable } from '../../platform/database/tables/accounts.ts';
import type { ApiKey, ApiKeyRefusal, Db } from '../../platform/database/tables.ts';

export async function insertApiKey(db: Db, row: Insertable<ApiKeysTable>): Promise<void> {
  await db.insertInto('api_keys').values(row).execute();
}

const byHash = prepared((db, { hash }: Slots<{ hash: string }>) =>
  db
    .selectFrom('api_keys')
    .selectAll()
    .where('key_hash', '=', hash)
    .where('deleted_at', 'is', null),
);

/** Finds a key of any account by its hash. */
export async function findApiKeyByHash(db: Db, hash: string): Promise<ApiKey | undefined> {
  return (await byHash(db, { hash })).rows[0];
}

/** Finds a key of any account. */
export function findApiKey(db: Db, id: string): Promise<ApiKey | undefined> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
}

/** Returns the ids of keys that are active, of any account. */
export async function listActiveKeyIds(
  db: Db,
  ids: readonly string[],
  nowMs: number,
): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom('api_keys')
    .select('id')
    .where('id', 'in', ids)
    .where('is_active', '=', 1)
    .where('deleted_at', 'is', null)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', nowMs)]))
    .execute();
  return rows.map(({ id }) => id);
}

/** Oldest first. */
export function listApiKeys(db: Db, accountId: string): Promise<ApiKey[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Returns false if the key was deleted meanwhile. */
export async function updateApiKey(
  db: Db,
  id: string,
  changes: Updateable<ApiKeysTable>,
): Promise<boolean> {
  const result = await db
    .updateTable('api_keys')
    .set(changes)
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

type Touch = { id: string; nowMs: number; beforeMs: number };

const touch = prepared((db, { id, nowMs, beforeMs }: Slots<Touch>) =>
  db
    .updateTable('api_keys')
    .set({ last_used_at: nowMs })
    .where('id', '=', id)
    .where((where) =>
      where.or([where('last_used_at', 'is', null), where('last_used_at', '<=', beforeMs)]),
    ),
);

/** Records a use if none was recorded after `beforeMs`, so that many requests cause one write. */
export async function touchApiKey(
  db: Db,
  id: string,
  nowMs: number,
  beforeMs: number,
): Promise<void> {
  await touch(db, { id, nowMs, beforeMs });
}

/** Counts the live pods that each key of the account rented. */
export async function countPodsByKey(db: Db, accountId: string): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('pods')
    .select((select) => ['created_by_api_key_id', select.fn.countAll<number>().as('count')])
    .where('account_id', '=', accountId)
    .where('created_by_api_key_id', 'is not', null)
    .where('delete_requested_at', 'is', null)
    .where('ended_at', 'is', null)
    .groupBy('created_by_api_key_id')
    .execute();
  return new Map(rows.map((row) => [row.created_by_api_key_id ?? '', Number(row.count)]));
}

/** Deletes every key of an account with its refusals, and wipes the sealed texts. */
export async function deleteApiKeysOf(db: Db, accountId: string, nowMs: number): Promise<void> {
  const own = db.selectFrom('api_keys').select('id').where('account_id', '=', accountId);
  await db.deleteFrom('api_key_refusals').where('api_key_id', 'in', own).execute();
  await db
    .updateTable('api_keys')
    .set({ is_active: 0, key_sealed: '', updated_at: nowMs, deleted_at: nowMs })
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .execute();
}

/** Maximum number of refusals retained per key. */
const MAX_REFUSALS = 100;

/** Stores a refusal and deletes the key's refusals beyond the newest 100. */
export async function insertRefusal(db: Db, row: ApiKeyRefusal): Promise<void> {
  await db.insertInto('api_key_refusals').values(row).execute();
  const newest = db
    .selectFrom('api_key_refusals')
    .select('id')
    .where('api_key_id', '=', row.api_key_id)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(MAX_REFUSALS);
  await db
    .deleteFrom('api_key_refusals')
    .where('api_key_id', '=', row.api_key_id)
    .where('id', 'not in', newest)
    .execute();
}

/** Newest first. */
export function listRefusals(db: Db, keyId: string): Promise<ApiKeyRefusal[]> {
  return db
    .selectFrom('api_key_refusals')
    .selectAll()
    .where('api_key_id', '=', keyId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(MAX_REFUSALS)
    .execute();
}
