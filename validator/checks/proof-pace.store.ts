/** Queries of how long proofs of work take executors. */
import type { Insertable } from 'kysely';
import type { ProofPacesTable, StoreDb } from '../store/tables.ts';

export type Device = ProofPacesTable['device'];
export type Pace = Pick<ProofPacesTable, 'mean_ms' | 'samples'>;
export type PaceOf = Pace & Pick<ProofPacesTable, 'executor_id'>;

/** The newest are enough for a median. */
const MAX_COMPARED = 200;

/** Of executors with this hardware. */
export function pacesOfModel(db: StoreDb, device: Device, model: string): Promise<PaceOf[]> {
  return db
    .selectFrom('proof_paces')
    .select(['executor_id', 'mean_ms', 'samples'])
    .where('device', '=', device)
    .where('model', '=', model)
    .orderBy('seen_ms', 'desc')
    .limit(MAX_COMPARED)
    .execute();
}

/** Of one executor; undefined before it proved anything with this hardware. */
export function findPace(
  db: StoreDb,
  executorId: string,
  { device, model }: { device: Device; model: string },
): Promise<Pace | undefined> {
  return db
    .selectFrom('proof_paces')
    .select(['mean_ms', 'samples'])
    .where('executor_id', '=', executorId)
    .where('device', '=', device)
    .where('model', '=', model)
    .executeTakeFirst();
}

/** In the place of what was known of this executor, be it with other hardware. */
export async function keepPace(db: StoreDb, pace: Insertable<ProofPacesTable>): Promise<void> {
  const { executor_id: _, device: __, ...values } = pace;
  await db
    .insertInto('proof_paces')
    .values(pace)
    .onConflict((conflict) => conflict.columns(['executor_id', 'device']).doUpdateSet(values))
    .execute();
}

/** Forgets executors that proved nothing since `sinceMs`. */
export async function forgetPaces(db: StoreDb, sinceMs: number): Promise<void> {
  await db.deleteFrom('proof_paces').where('seen_ms', '<', sinceMs).execute();
}
