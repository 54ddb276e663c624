/** Queries of the simulated processor's own table. */
import type { Db, SimulatedPayout } from '../../platform/database/tables.ts';

/** Stores a payout unless its key is there already, and counts the question; returns what is there. */
export async function askForPayout(db: Db, row: SimulatedPayout): Promise<SimulatedPayout> {
  await db
    .insertInto('simulated_payouts')
    .values(row)
    .onConflict((conflict) => conflict.column('payout_key').doNothing())
    .execute();
  return db
    .updateTable('simulated_payouts')
    .set((eb) => ({ asked: eb('asked', '+', 1) }))
    .where('payout_key', '=', row.payout_key)
    .returningAll()
    .executeTakeFirstOrThrow();
}
