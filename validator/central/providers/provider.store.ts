/** All queries on providers. */

import type { Updateable } from 'kysely';
import type { ProvidersTable } from '../platform/database/tables/executors.ts';
import type { Db, Provider } from '../platform/database/tables.ts';

/** By id. */
export async function findProvider(db: Db, id: string): Promise<Provider | undefined> {
  return db.selectFrom('providers').selectAll().where('id', '=', id).executeTakeFirst();
}

/** The provider of this hotkey; the one given is stored if there is none. */
export async function findOrInsertProvider(db: Db, provider: Provider): Promise<Provider> {
  await db
    .insertInto('providers')
    .values(provider)
    .onConflict((conflict) => conflict.column('hotkey').doNothing())
    .execute();
  return db
    .selectFrom('providers')
    .selectAll()
    .where('hotkey', '=', provider.hotkey)
    .executeTakeFirstOrThrow();
}

/** Columns of a provider that change. */
export type ProviderChange = Updateable<ProvidersTable>;

/** Writes them. */
export async function updateProvider(db: Db, id: string, change: ProviderChange): Promise<void> {
  await db.updateTable('providers').set(change).where('id', '=', id).execute();
}
