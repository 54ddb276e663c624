/** Queries of the mean duration of proofs of work by executor. */
import { columnsFrom, prepared, type Slots } from '../store/prepared.ts';
import type { ProofPacesTable, StoreDb } from '../store/tables.ts';

export type Device = ProofPacesTable['device'];
export type Duration = Pick<ProofPacesTable, 'mean_ms' | 'samples'>;
export type DurationOf = Duration & Pick<ProofPacesTable, 'executor_id'>;

/** Maximum number of rows that a median is computed from; the newest are used. */
export const MAX_COMPARED = 200;

const ofModel = prepared((db, { device, model }: Slots<{ device: Device; model: string }>) =>
  db
    .selectFrom('proof_paces')
    .select(['executor_id', 'mean_ms', 'samples'])
    .where('device', '=', device)
    .where('model', '=', model)
    .orderBy('seen_ms', 'desc')
    .orderBy('executor_id')
    .limit(MAX_COMPARED),
);

/** Durations of executors with this hardware. */
export async function durationsOfModel(
  db: StoreDb,
  device: Device,
  model: string,
): Promise<DurationOf[]> {
  return (await ofModel(db, { device, model })).rows;
}

type Key = { executorId: string; device: Device; model: string };

const ofExecutor = prepared((db, { executorId, device, model }: Slots<Key>) =>
  db
    .selectFrom('proof_paces')
    .select(['mean_ms', 'samples'])
    .where('executor_id', '=', executorId)
    .where('device', '=', device)
    .where('model', '=', model),
);

/** Returns undefined before the executor proved work with this hardware. */
export async function findDuration(
  db: StoreDb,
  executorId: string,
  { device, model }: { device: Device; model: string },
): Promise<Duration | undefined> {
  return (await ofExecutor(db, { executorId, device, model })).rows[0];
}

const save = prepared((db, duration: Slots<ProofPacesTable>) => {
  const key = columnsFrom(duration, ['executor_id', 'device']);
  const values = columnsFrom(duration, ['model', 'mean_ms', 'samples', 'seen_ms']);
  return db
    .insertInto('proof_paces')
    .values({ ...key, ...values })
    .onConflict((conflict) => conflict.columns(['executor_id', 'device']).doUpdateSet(values));
});

/** Replaces the executor's row, even if that was for other hardware. */
export async function saveDuration(db: StoreDb, duration: ProofPacesTable): Promise<void> {
  await save(db, duration);
}

const deleteBefore = prepared((db, { sinceMs }: Slots<{ sinceMs: number }>) =>
  db.deleteFrom('proof_paces').where('seen_ms', '<', sinceMs),
);

/** Deletes executors without a proof since `sinceMs`. Returns true if there were some. */
export async function deleteDurationsBefore(db: StoreDb, sinceMs: number): Promise<boolean> {
  const { numAffectedRows = 0n } = await deleteBefore(db, { sinceMs });
  return numAffectedRows > 0n;
}
