/** All queries on collateral_deposits, and the flag of executors that is derived from them. */
import { sql } from 'kysely';
import { idsJson, isAmong, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { CollateralDepositsTable } from '../../platform/database/tables/executors.ts';
import type { Db } from '../../platform/database/tables.ts';

/** Maximum number of rows per query. */
const BATCH = 500;

export type Deposit = CollateralDepositsTable;

export async function listDeposits(db: Db): Promise<Deposit[]> {
  return db
    .selectFrom('collateral_deposits')
    .selectAll()
    .orderBy('subject')
    .orderBy('source')
    .execute();
}

export async function listFeedSubjects(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('collateral_deposits')
    .select('subject')
    .where('source', '=', 'feed')
    .execute();
  return rows.map(({ subject }) => subject);
}

/** Inserts deposits; existing deposits are unchanged. */
export async function insertDeposits(db: Db, deposits: readonly Deposit[]): Promise<void> {
  for (const batch of batchesOf(deposits)) {
    await db
      .insertInto('collateral_deposits')
      .values(batch)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** Deletes deposits and returns their number. */
export async function deleteDeposits(
  db: Db,
  source: Deposit['source'],
  subjects: readonly string[],
): Promise<number> {
  let deleted = 0;
  for (const batch of batchesOf(subjects)) {
    const done = await db
      .deleteFrom('collateral_deposits')
      .where('source', '=', source)
      .where('subject', 'in', batch)
      .executeTakeFirst();
    deleted += Number(done.numDeletedRows);
  }
  return deleted;
}

const DEPOSITED = sql<0 | 1>`case when exists (
  select 1 from collateral_deposits where subject = executors.id or subject =
    (select hotkey from providers where providers.id = executors.provider_id)
) then 1 else 0 end`;

const updateFlags = prepared((db, { subjects }: Slots<{ subjects: string }>) =>
  db
    .updateTable('executors')
    .set({ collateral_deposited: DEPOSITED })
    .where((eb) =>
      eb.or([
        isAmong(db, 'id', subjects),
        eb('provider_id', 'in', (select) =>
          select
            .selectFrom('providers')
            .select('providers.id')
            .where(isAmong(db, 'providers.hotkey', subjects)),
        ),
      ]),
    )
    .where('collateral_deposited', '<>', DEPOSITED),
);

/**
 * Sets the flag of the executors with these ids and of the providers' executors with these hotkeys, if the flag is
 * wrong.
 */
export async function updateDepositFlags(db: Db, subjects: readonly string[]): Promise<void> {
  for (const batch of batchesOf(subjects)) {
    await updateFlags(db, { subjects: idsJson(batch) });
  }
}

const updateFlag = prepared((db, { executorId }: Slots<{ executorId: string }>) =>
  db
    .updateTable('executors')
    .set({ collateral_deposited: DEPOSITED })
    .where('id', '=', executorId)
    .where('collateral_deposited', '<>', DEPOSITED),
);

/** Sets the flag of one executor, if the flag is wrong. Runs with every verdict. */
export async function updateDepositFlag(db: Db, executorId: string): Promise<void> {
  await updateFlag(db, { executorId });
}

/** Returns true if there is an executor with this id that is not removed, or a provider with this hotkey. */
export async function isKnownSubject(db: Db, subject: string): Promise<boolean> {
  const found = await db
    .selectFrom('executors')
    .select('id')
    .where('id', '=', subject)
    .where('state', '<>', 'removed')
    .union(db.selectFrom('providers').select('id').where('hotkey', '=', subject))
    .executeTakeFirst();
  return found !== undefined;
}

function batchesOf<T>(all: readonly T[]): T[][] {
  const count = Math.ceil(all.length / BATCH);
  return Array.from({ length: count }, (_, at) => all.slice(at * BATCH, (at + 1) * BATCH));
}
