/** The state of the market at the end of a simulation, in an order that does not depend on the database. */
import { checkLedger } from '../invariants/database-invariants.ts';
import type { World } from './world.ts';

/** Returns what the hash of a run covers besides its events. */
export async function finalState({ db, store, violations }: World) {
  const ledger = await checkLedger(db, violations);
  const pods = await db
    .selectFrom('pods')
    .select(['id', 'executor_id', 'state', 'reason_code', 'first_running_at', 'ended_at'])
    .execute();
  const executors = await db
    .selectFrom('executors')
    .select(['id', 'state', 'price_uusd_per_gpu_hour'])
    .execute();
  const documents = await store.selectFrom('evidence').select('id').execute();
  return {
    ledger,
    pods: sorted(pods),
    executors: sorted(executors),
    evidence: sorted(documents).map(({ id }) => id),
  };
}

/** Engines compare text by different rules, so rows are ordered here. */
function sorted<T extends { id: string }>(rows: readonly T[]): T[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
