/** All queries on provider_subscriptions. */
import type { Db } from '../db/tables.ts';

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
