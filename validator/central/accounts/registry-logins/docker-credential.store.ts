/** Queries of the docker_credentials table. */

import type { Updateable } from 'kysely';
import type { DockerCredentialsTable } from '../../platform/database/tables/accounts.ts';
import type { Db, DockerCredential } from '../../platform/database/tables.ts';

export async function insertDockerCredential(db: Db, row: DockerCredential): Promise<void> {
  await db.insertInto('docker_credentials').values(row).execute();
}

/** Finds a credential of any account. */
export function findDockerCredential(db: Db, id: string): Promise<DockerCredential | undefined> {
  return db.selectFrom('docker_credentials').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Oldest first. */
export function listDockerCredentials(db: Db, accountId: string): Promise<DockerCredential[]> {
  return db
    .selectFrom('docker_credentials')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

export async function updateDockerCredential(
  db: Db,
  id: string,
  changes: Updateable<DockerCredentialsTable>,
): Promise<void> {
  await db.updateTable('docker_credentials').set(changes).where('id', '=', id).execute();
}

export async function deleteDockerCredential(db: Db, id: string): Promise<void> {
  await db.deleteFrom('docker_credentials').where('id', '=', id).execute();
}

export async function deleteDockerCredentialsOf(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('docker_credentials').where('account_id', '=', accountId).execute();
}
