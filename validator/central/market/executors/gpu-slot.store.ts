/**
 * All queries on gpu_slots, which prevent a GPU from being rented twice. Callers that change slots first lock their
 * executor, because its row counts the slots.
 */
import { sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Db, GpuSlot } from '../../platform/database/tables.ts';

type OfNode = Slots<{ executorId: string }>;

const byIndex = prepared((db, { executorId }: OfNode) =>
  db.selectFrom('gpu_slots').selectAll().where('executor_id', '=', executorId).orderBy('idx'),
);

/** Sorted by index. */
export async function listSlots(db: Db, executorId: string): Promise<GpuSlot[]> {
  return (await byIndex(db, { executorId })).rows;
}

/** Slots of all executors, sorted by index. */
export async function listAllSlots(
  db: Db,
): Promise<Pick<GpuSlot, 'executor_id' | 'gpu_uuid' | 'pod_id'>[]> {
  return db
    .selectFrom('gpu_slots')
    .select(['executor_id', 'gpu_uuid', 'pod_id'])
    .orderBy('executor_id')
    .orderBy('idx')
    .execute();
}

/** Lists the UUIDs in the slots of banned providers, including the slots of removed nodes. */
export async function listBannedCards(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('providers')
    .innerJoin('executors', 'executors.provider_id', 'providers.id')
    .innerJoin('gpu_slots', 'gpu_slots.executor_id', 'executors.id')
    .select('gpu_uuid')
    .where('providers.banned_at', 'is not', null)
    .execute();
  return rows.map(({ gpu_uuid: uuid }) => uuid);
}

const locked = prepared((tx, { executorId }: OfNode) =>
  tx
    .selectFrom('gpu_slots')
    .selectAll()
    .where('executor_id', '=', executorId)
    .orderBy('idx')
    .$if(isPostgres(tx), (query) => query.forUpdate()),
);

/** Locks the slots until the transaction ends. Sorted by index. */
export async function lockSlots(tx: Db, executorId: string): Promise<GpuSlot[]> {
  return (await locked(tx, { executorId })).rows;
}

/**
 * Takes free slots. Returns the number of slots taken, which is lower than requested if another rental took slots
 * first.
 */
export async function takeSlots(
  db: Db,
  executorId: string,
  indices: readonly number[],
  podId: string,
): Promise<number> {
  if (indices.length === 0) return 0;
  const done = await db
    .updateTable('gpu_slots')
    .set({ pod_id: podId })
    .where('executor_id', '=', executorId)
    .where('idx', 'in', indices)
    .where('pod_id', 'is', null)
    .executeTakeFirst();
  await countSlots(db, [executorId]);
  return Number(done.numUpdatedRows);
}

/** Returns the number of slots freed. */
export async function freeSlotsOf(db: Db, podId: string): Promise<number> {
  const freed = await db
    .updateTable('gpu_slots')
    .set({ pod_id: null })
    .where('pod_id', '=', podId)
    .returning('executor_id')
    .execute();
  await countSlots(db, [...new Set(freed.map((slot) => slot.executor_id))]);
  return freed.length;
}

/** Deletes the slots without pods. */
export async function dropFreeSlots(db: Db, executorId: string): Promise<void> {
  await db
    .deleteFrom('gpu_slots')
    .where('executor_id', '=', executorId)
    .where('pod_id', 'is', null)
    .execute();
  await countSlots(db, [executorId]);
}

export async function insertSlots(db: Db, slots: readonly GpuSlot[]): Promise<void> {
  if (slots.length === 0) return;
  await db.insertInto('gpu_slots').values(slots).execute();
  await countSlots(db, [...new Set(slots.map((slot) => slot.executor_id))]);
}

const counted = prepared((db, { executorId }: OfNode) =>
  db
    .updateTable('executors')
    .set({
      slots_total: sql<number>`(select count(*) from gpu_slots where executor_id = executors.id)`,
      slots_free: sql<number>`(select count(*) from gpu_slots
        where executor_id = executors.id and pod_id is null)`,
    })
    .where('id', '=', executorId),
);

async function countSlots(db: Db, executorIds: readonly string[]): Promise<void> {
  for (const executorId of executorIds) await counted(db, { executorId });
}
