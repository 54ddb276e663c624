/** Queries on the uploads table. */
import { sql } from 'kysely';
import type { Db, Upload } from '../../platform/database/tables.ts';

export async function insertUpload(db: Db, upload: Upload): Promise<void> {
  await db.insertInto('uploads').values(upload).execute();
}

export function findUpload(db: Db, key: string): Promise<Upload | undefined> {
  return db.selectFrom('uploads').selectAll().where('object_key', '=', key).executeTakeFirst();
}

/** Returns the bytes and the number of an account's uploads, including unused URLs. */
export async function uploadedBy(db: Db, accountId: string) {
  const row = await db
    .selectFrom('uploads')
    .select((select) => [
      sql<number>`coalesce(sum(size_bytes), 0)`.as('bytes'),
      select.fn.countAll<number>().as('count'),
    ])
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  return { bytes: Number(row.bytes), count: Number(row.count) };
}

export type UploadQuery = { accountId: string; purpose: Upload['purpose']; arrived: boolean };

/** Counts how many of these distinct keys match the query. */
export async function countUploads(
  db: Db,
  keys: readonly string[],
  { accountId, purpose, arrived }: UploadQuery,
): Promise<number> {
  const row = await db
    .selectFrom('uploads')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('object_key', 'in', keys)
    .where('account_id', '=', accountId)
    .where('purpose', '=', purpose)
    .$if(arrived, (query) => query.where('stored_at', 'is not', null))
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function markStored(db: Db, key: string, nowMs: number): Promise<void> {
  await db
    .updateTable('uploads')
    .set({ stored_at: nowMs })
    .where('object_key', '=', key)
    .where('stored_at', 'is', null)
    .execute();
}

/** Returns uploads of deleted accounts, and unused uploads that expired before `expiredBeforeMs`. */
export function listLeftoverUploads(
  db: Db,
  options: { expiredBeforeMs: number; withUnused: boolean; limit: number },
): Promise<Upload[]> {
  return db
    .selectFrom('uploads')
    .innerJoin('accounts', 'accounts.id', 'uploads.account_id')
    .selectAll('uploads')
    .where((where) => {
      const gone = where('accounts.deleted_at', 'is not', null);
      const unused = where.and([
        where('uploads.stored_at', 'is', null),
        where('uploads.expires_at', '<', options.expiredBeforeMs),
      ]);
      return options.withUnused ? where.or([gone, unused]) : gone;
    })
    .limit(options.limit)
    .execute();
}

/** Deletes the row. Call it after the object was removed. */
export async function deleteUpload(db: Db, key: string): Promise<void> {
  await db.deleteFrom('uploads').where('object_key', '=', key).execute();
}
