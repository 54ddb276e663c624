/** Queries of rental probes: one row per executor, written before its pod is launched. */
import { prepared, type Slots } from '../../store/prepared.ts';
import type { RentalProbeRow, StoreDb } from '../../store/tables.ts';

const probeOf = prepared((db, { executorId }: Slots<{ executorId: string }>) =>
  db.selectFrom('rental_probes').selectAll().where('executor_id', '=', executorId),
);

export async function findRentalProbe(
  db: StoreDb,
  executorId: string,
): Promise<RentalProbeRow | undefined> {
  return (await probeOf(db, { executorId })).rows[0];
}

/** Records the start of a probe. Returns false if another process is probing the executor. */
export async function beginRentalProbe(
  db: StoreDb,
  begun: { executor_id: string; pod_id: string; started_ms: number },
): Promise<boolean> {
  const { executor_id: _, ...changed } = begun;
  const { numInsertedOrUpdatedRows: count = 0n } = await db
    .insertInto('rental_probes')
    .values({ ...begun, ended_ms: null, result_json: null })
    .onConflict((conflict) =>
      conflict
        .column('executor_id')
        .doUpdateSet({ ...changed, ended_ms: null })
        .where('rental_probes.ended_ms', 'is not', null),
    )
    .executeTakeFirstOrThrow();
  return count > 0n;
}

/** `endedMs` null means that the pod may still exist. */
export async function endRentalProbe(
  db: StoreDb,
  podId: string,
  { endedMs, resultJson }: { endedMs: number | null; resultJson: string | null },
): Promise<void> {
  await db
    .updateTable('rental_probes')
    .set({ ended_ms: endedMs, result_json: resultJson })
    .where('pod_id', '=', podId)
    .execute();
}
