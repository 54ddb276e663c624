/** Queries of the tables account_secrets and pod_secrets. */
import type { AccountSecret, Db, PodSecretRow } from '../../platform/database/tables.ts';

/** Inserts a secret, or replaces the value of the secret with this name. Returns the stored row. */
export function putSecret(db: Db, row: AccountSecret): Promise<AccountSecret> {
  const { value_sealed, updated_at } = row;
  return db
    .insertInto('account_secrets')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['account_id', 'name']).doUpdateSet({ value_sealed, updated_at }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Finds a secret of any account. */
export function findSecret(db: Db, id: string): Promise<AccountSecret | undefined> {
  return db.selectFrom('account_secrets').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Sorted by name. */
export function listSecrets(db: Db, accountId: string): Promise<AccountSecret[]> {
  return db
    .selectFrom('account_secrets')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('name')
    .execute();
}

export async function deleteSecret(db: Db, id: string): Promise<void> {
  await db.deleteFrom('account_secrets').where('id', '=', id).execute();
}

/** Deletes the secrets of an account, and the copies of its pods. */
export async function deleteSecretsOf(db: Db, accountId: string): Promise<void> {
  const pods = db.selectFrom('pods').select('id').where('account_id', '=', accountId);
  await db.deleteFrom('pod_secrets').where('pod_id', 'in', pods).execute();
  await db.deleteFrom('account_secrets').where('account_id', '=', accountId).execute();
}

export async function insertPodSecrets(db: Db, rows: readonly PodSecretRow[]): Promise<void> {
  if (rows.length > 0) await db.insertInto('pod_secrets').values(rows).execute();
}

/** Sorted by name. */
export function listPodSecrets(db: Db, podId: string): Promise<PodSecretRow[]> {
  return db
    .selectFrom('pod_secrets')
    .selectAll()
    .where('pod_id', '=', podId)
    .orderBy('name')
    .execute();
}
