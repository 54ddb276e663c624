/** Queries of the providers and provider_subscriptions tables. */
import type { Updateable } from 'kysely';
import type { ProvidersTable } from '../platform/database/tables/executors.ts';
import type { Db, Provider } from '../platform/database/tables.ts';

export async function findProvider(db: Db, id: string): Promise<Provider | undefined> {
  return db.selectFrom('providers').selectAll().where('id', '=', id).executeTakeFirst();
}

export async function findProviderByHotkey(db: Db, hotkey: string): Promise<Provider | undefined> {
  return db.selectFrom('providers').selectAll().where('hotkey', '=', hotkey).executeTakeFirst();
}

/** Returns the provider with the hotkey of `provider`. Inserts `provider` if there is none. */
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

export type ProviderChange = Updateable<ProvidersTable>;

export async function updateProvider(db: Db, id: string, change: ProviderChange): Promise<void> {
  await db.updateTable('providers').set(change).where('id', '=', id).execute();
}

/** Lists the GPU types that a provider subscribed to, sorted by name. */
export async function listSubscriptions(db: Db, providerId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('provider_subscriptions')
    .select('gpu_class')
    .where('provider_id', '=', providerId)
    .orderBy('gpu_class')
    .execute();
  return rows.map((row) => row.gpu_class);
}

export async function replaceSubscriptions(
  tx: Db,
  providerId: string,
  gpuClasses: readonly string[],
): Promise<void> {
  await tx.deleteFrom('provider_subscriptions').where('provider_id', '=', providerId).execute();
  if (gpuClasses.length === 0) return;
  const rows = gpuClasses.map((gpu_class) => ({ provider_id: providerId, gpu_class }));
  await tx.insertInto('provider_subscriptions').values(rows).execute();
}

/** Lists every type with at least one subscription, in the form that the provider stored. */
export async function listSubscribedTypes(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('provider_subscriptions')
    .select('gpu_class')
    .distinct()
    .execute();
  return rows.map((row) => row.gpu_class);
}

/**
 * Lists providers with an e-mail address and a subscription to one of these types, except banned providers, ordered by
 * id, starting after `afterId`.
 */
export async function listSubscribers(
  db: Db,
  gpuTypes: readonly string[],
  { afterId, limit }: { afterId: string; limit: number },
): Promise<{ id: string; email: string }[]> {
  if (gpuTypes.length === 0) return [];
  const rows = await db
    .selectFrom('provider_subscriptions')
    .innerJoin('providers', 'providers.id', 'provider_subscriptions.provider_id')
    .select(['providers.id', 'providers.email'])
    .where('gpu_class', 'in', gpuTypes)
    .where('providers.email', 'is not', null)
    .where('providers.banned_at', 'is', null)
    .where('providers.id', '>', afterId)
    .distinct()
    .orderBy('providers.id')
    .limit(limit)
    .execute();
  return rows.flatMap(({ id, email }) => (email === null ? [] : [{ id, email }]));
}
