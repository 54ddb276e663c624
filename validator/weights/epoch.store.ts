/** Queries of the epochs: weights as they were computed. */
import type { EpochRow, EpochState, LedgerDb } from '../ledger/ledger.tables.ts';

/** The newest; undefined before the first. */
export function lastEpoch(db: LedgerDb): Promise<EpochRow | undefined> {
  return db.selectFrom('epochs').selectAll().orderBy('number', 'desc').limit(1).executeTakeFirst();
}

export function findEpoch(db: LedgerDb, number: number): Promise<EpochRow | undefined> {
  return db.selectFrom('epochs').selectAll().where('number', '=', number).executeTakeFirst();
}

/** When the newest weights that the central API has shown as ours were computed; null before the first. */
export async function lastConfirmedMs(db: LedgerDb): Promise<number | null> {
  const row = await db
    .selectFrom('epochs')
    .select('computed_ms')
    .where('state', '=', 'confirmed')
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.computed_ms ?? null;
}

export async function insertEpoch(db: LedgerDb, row: EpochRow): Promise<void> {
  await db.insertInto('epochs').values(row).execute();
}

export async function setEpochState(
  db: LedgerDb,
  number: number,
  state: EpochState,
): Promise<void> {
  await db.updateTable('epochs').set({ state }).where('number', '=', number).execute();
}

/** The newest stays, whatever its age: the next one is counted from it. */
export async function forgetEpochs(db: LedgerDb, beforeMs: number): Promise<void> {
  const last = await lastEpoch(db);
  await db
    .deleteFrom('epochs')
    .where('computed_ms', '<', beforeMs)
    .where('number', '<', last?.number ?? 0)
    .execute();
}
