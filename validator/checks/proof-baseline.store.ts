/** Queries of the mean duration of proofs of work by executor. */
import type { Insertable } from 'kysely';
import type { ProofPacesTable, StoreDb } from '../store/tables.ts';

export type Device = ProofPacesTable['device'];
export type Duration = Pick<ProofPacesTable, 'mean_ms' | 'samples'>;
export type DurationOf = Duration & Pick<ProofPacesTable, 'executor_id'>;

/** Maximum number of rows that a median is computed from; the newest are used. */
const MAX_COMPARED = 200;

/** Durations of executors with this hardware. */
export function durationsOfModel(
  db: StoreDb,
  device: Device,
  model: string,
): Promise<DurationOf[]> {
  return db
    .selectFrom('proof_paces')
    .select(['executor_id', 'mean_ms', 'samples'])
    .where('device', '=', device)
    .where('model', '=', model)
    .orderBy('seen_ms', 'desc')
    .limit(MAX_COMPARED)
    .execute();
}

/** Returns undefined before the executor proved work with this hardware. */
export function findDuration(
  db: StoreDb,
  executorId: string,
  { device, model }: { device: Device; model: string },
): Promise<Duration | undefined> {
  return db
    .selectFrom('proof_paces')
    .select(['mean_ms', 'samples'])
    .where('executor_id', '=', executorId)
    .where('device', '=', device)
    .where('model', '=', model)
    .executeTakeFirst();
}

/** Replaces the executor's row, even if that was for other hardware. */
export async function saveDuration(
  db: StoreDb,
  duration: Insertable<ProofPacesTable>,
): Promise<void> {
  const { executor_id: _, device: __, ...values } = duration;
  await db
    .insertInto('proof_paces')
    .values(duration)
    .onConflict((conflict) => conflict.columns(['executor_id', 'device']).doUpdateSet(values))
    .execute();
}

/** Deletes executors without a proof since `sinceMs`. */
export async function deleteDurationsBefore(db: StoreDb, sinceMs: number): Promise<void> {
  await db.deleteFrom('proof_paces').where('seen_ms', '<', sinceMs).execute();
}
