/** All queries on gpu_slots: the guard against renting one GPU twice. */
import type { Db, GpuSlot } from '../db/tables.ts';

/** By index. */
export async function listSlots(db: Db, executorId: string): Promise<GpuSlot[]> {
  return db
    .selectFrom('gpu_slots')
    .selectAll()
    .where('executor_id', '=', executorId)
    .orderBy('idx')
    .execute();
}

/** Gives free slots to a pod; the number really taken is lower when another was faster. */
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
  return Number(done.numUpdatedRows);
}

/** Frees every slot of a pod; how many there were. */
export async function freeSlotsOf(db: Db, podId: string): Promise<number> {
  const done = await db
    .updateTable('gpu_slots')
    .set({ pod_id: null })
    .where('pod_id', '=', podId)
    .executeTakeFirst();
  return Number(done.numUpdatedRows);
}

/** Removes the slots that no pod holds. */
export async function dropFreeSlots(db: Db, executorId: string): Promise<void> {
  await db
    .deleteFrom('gpu_slots')
    .where('executor_id', '=', executorId)
    .where('pod_id', 'is', null)
    .execute();
}

/** Adds free slots. */
export async function insertSlots(db: Db, slots: readonly GpuSlot[]): Promise<void> {
  if (slots.length > 0) await db.insertInto('gpu_slots').values(slots).execute();
}
