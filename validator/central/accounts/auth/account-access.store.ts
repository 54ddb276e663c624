/** The query of an account by its id, for whoever acts for one; every other is in accounts/. Deleted accounts are never found. */
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Account, Db } from '../../platform/database/tables.ts';

const byId = prepared((db, { id }: Slots<{ id: string }>) =>
  db.selectFrom('accounts').selectAll().where('id', '=', id).where('deleted_at', 'is', null),
);

/** By id. */
export async function findAccount(db: Db, id: string): Promise<Account | undefined> {
  return (await byId(db, { id })).rows[0];
}
