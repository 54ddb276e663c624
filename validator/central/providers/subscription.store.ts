/** All queries on provider_subscriptions. */
import type { Db } from '../platform/database/tables.ts';

/** GPU types that a provider wants to hear of, by name. */
export async function listSubscriptions(db: Db, providerId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('provider_subscriptions')
    .select('gpu_class')
    .where('provider_id', '=', providerId)
    .orderBy('gpu_class')
    .execute();
  return rows.map((row) => row.gpu_class);
}

/** These in place of those before. */
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

/** Every type that anybody subscribed to. */
export async function listSubscribedTypes(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('provider_subscriptions')
    .select('gpu_class')
    .distinct()
    .execute();
  return rows.map((row) => row.gpu_class);
}

/** Providers with an address that subscribed to one of these types, by id from after `afterId` on. */
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
