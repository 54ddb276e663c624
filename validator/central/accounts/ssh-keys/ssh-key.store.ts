/** Queries of the ssh_keys table. */

import type { Insertable, Updateable } from 'kysely';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { SshKeysTable } from '../../platform/database/tables/accounts.ts';
import type { Db, SshKey } from '../../platform/database/tables.ts';

/** Returns false if the account already has the key. */
export async function insertSshKey(db: Db, row: Insertable<SshKeysTable>): Promise<boolean> {
  const result = await db
    .insertInto('ssh_keys')
    .values(row)
    .onConflict((conflict) => conflict.columns(['account_id', 'fingerprint']).doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Finds a key of any account. */
export function findSshKey(db: Db, id: string): Promise<SshKey | undefined> {
  return db.selectFrom('ssh_keys').selectAll().where('id', '=', id).executeTakeFirst();
}

export function findSshKeyByFingerprint(
  db: Db,
  accountId: string,
  fingerprint: string,
): Promise<SshKey | undefined> {
  return db
    .selectFrom('ssh_keys')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('fingerprint', '=', fingerprint)
    .executeTakeFirst();
}

const ofAccount = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db
    .selectFrom('ssh_keys')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id'),
);

/** Oldest first. */
export async function listSshKeys(db: Db, accountId: string): Promise<SshKey[]> {
  return (await ofAccount(db, { accountId })).rows;
}

export async function updateSshKey(
  db: Db,
  id: string,
  changes: Updateable<SshKeysTable>,
): Promise<void> {
  await db.updateTable('ssh_keys').set(changes).where('id', '=', id).execute();
}

export async function deleteSshKey(db: Db, id: string): Promise<void> {
  await db.deleteFrom('ssh_keys').where('id', '=', id).execute();
}

export async function deleteSshKeysOf(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('ssh_keys').where('account_id', '=', accountId).execute();
}
