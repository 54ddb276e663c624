/** Queries of the simulated payment processor's own table. */
import type { Db, SimulatedCharge } from '../../platform/database/tables.ts';

/** Stores a charge unless its key is there already; returns what is there. */
export async function insertCharge(db: Db, row: SimulatedCharge): Promise<SimulatedCharge> {
  await db
    .insertInto('simulated_charges')
    .values(row)
    .onConflict((conflict) => conflict.column('charge_key').doNothing())
    .execute();
  return db
    .selectFrom('simulated_charges')
    .selectAll()
    .where('charge_key', '=', row.charge_key)
    .executeTakeFirstOrThrow();
}

/** By the processor's id. */
export function findCharge(db: Db, externalId: string): Promise<SimulatedCharge | undefined> {
  return db
    .selectFrom('simulated_charges')
    .selectAll()
    .where('external_id', '=', externalId)
    .executeTakeFirst();
}

/** Charges of that method from before `untilMs` that nobody was told the dispute of. */
export function listUndisputed(
  db: Db,
  paymentMethodId: string,
  untilMs: number,
): Promise<SimulatedCharge[]> {
  return db
    .selectFrom('simulated_charges')
    .selectAll()
    .where('payment_method_id', '=', paymentMethodId)
    .where('created_at', '<=', untilMs)
    .where('disputed_at', 'is', null)
    .execute();
}

/** The marketplace has heard of the dispute. */
export async function markDisputed(db: Db, externalId: string, nowMs: number): Promise<void> {
  await db
    .updateTable('simulated_charges')
    .set({ disputed_at: nowMs })
    .where('external_id', '=', externalId)
    .execute();
}
