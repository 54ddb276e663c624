/** Queries of cycles and their entries. */
import { prepared, type Slots } from '../store/prepared.ts';
import type {
  CycleEntriesTable,
  CycleEntryRow,
  CyclesTable,
  CycleVerdict,
  StoreDb,
} from '../store/tables.ts';
import type { Cycle, CycleEntry } from './cycle-set.ts';

/** Maximum number of rows per statement; databases limit the number of variables of a statement. */
const ROWS_AT_ONCE = 1_000;

/** Newest cycle; undefined before the first. */
export function lastCycle(db: StoreDb): Promise<CyclesTable | undefined> {
  return db.selectFrom('cycles').selectAll().orderBy('number', 'desc').limit(1).executeTakeFirst();
}

export function findCycle(db: StoreDb, number: number): Promise<CyclesTable | undefined> {
  return db.selectFrom('cycles').selectAll().where('number', '=', number).executeTakeFirst();
}

/** Lists the cycles before `number`, newest first. */
export function cyclesBefore(db: StoreDb, number: number, limit: number): Promise<CyclesTable[]> {
  return db
    .selectFrom('cycles')
    .selectAll()
    .where('number', '<', number)
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
}

/** Counts the entries of these cycles by verdict. */
export async function countVerdicts(
  db: StoreDb,
  cycles: readonly number[],
): Promise<{ cycle: number; verdict: CycleVerdict; count: number }[]> {
  if (cycles.length === 0) return [];
  const rows = await db
    .selectFrom('cycle_entries')
    .select((eb) => ['cycle', 'verdict', eb.fn.countAll<number>().as('count')])
    .where('cycle', 'in', [...cycles])
    .groupBy(['cycle', 'verdict'])
    .execute();
  return rows.map(({ count, ...row }) => ({ ...row, count: Number(count) }));
}

/**
 * Lists entries of a cycle ordered by executor id, for executors with an id above `after`. With `verdict`, lists only
 * entries with this verdict.
 */
export function entriesAfter(
  db: StoreDb,
  { cycle, after, verdict }: { cycle: number; after: string; verdict: CycleVerdict | undefined },
  limit: number,
): Promise<Pick<CycleEntryRow, 'executor_id' | 'entry_json'>[]> {
  const entries = db
    .selectFrom('cycle_entries')
    .select(['executor_id', 'entry_json'])
    .where('cycle', '=', cycle)
    .where('executor_id', '>', after)
    .orderBy('executor_id')
    .limit(limit);
  return (verdict === undefined ? entries : entries.where('verdict', '=', verdict)).execute();
}

export async function insertCycle(
  tx: StoreDb,
  cycle: { number: number; ended_ms: number },
  entries: readonly CycleEntriesTable[],
): Promise<void> {
  await tx.insertInto('cycles').values(cycle).execute();
  for (let at = 0; at < entries.length; at += ROWS_AT_ONCE) {
    const rows = entries.slice(at, at + ROWS_AT_ONCE);
    await tx.insertInto('cycle_entries').values(rows).execute();
  }
}

const lastBefore = prepared((db, place: Slots<{ executorId: string; cycle: number }>) =>
  db
    .selectFrom('cycle_entries')
    .selectAll()
    .where('executor_id', '=', place.executorId)
    .where('cycle', '<', place.cycle)
    .orderBy('cycle', 'desc')
    .limit(1),
);

/** Entry of an executor in the latest cycle before `cycle`. */
export async function lastEntryBefore(
  db: StoreDb,
  executorId: string,
  cycle: number,
): Promise<CycleEntryRow | undefined> {
  return (await lastBefore(db, { executorId, cycle })).rows[0];
}

type Measured = { executorId: string; cycle: number; count: number };

const goodTime = prepared((db, { executorId, cycle, count }: Slots<Measured>) =>
  db
    .selectFrom((eb) =>
      eb
        .selectFrom('cycle_entries')
        .select(['verdict', 'length_ms'])
        .where('executor_id', '=', executorId)
        .where('cycle', '<', cycle)
        .where('verdict', '<>', 'withheld')
        .orderBy('cycle', 'desc')
        .limit(count)
        .as('measured'),
    )
    .select((eb) => eb.fn.sum<number | null>('length_ms').as('ms'))
    .where('verdict', '=', 'ok'),
);

/**
 * Total length, in milliseconds, of the good cycles among the last `count` cycles before `cycle` in which the executor
 * was measured.
 */
export async function goodTimeBefore(db: StoreDb, measured: Measured): Promise<number> {
  return (await goodTime(db, measured)).rows[0]?.ms ?? 0;
}

/** Entry with the start and length of its cycle. */
export type EntryInTime = {
  cycle: number;
  entry_json: string;
  length_ms: number;
  start_ms: number;
};

/** Entries of an executor in all stored cycles, oldest first. */
export function entriesOf(db: StoreDb, executorId: string): Promise<EntryInTime[]> {
  return entriesInTime(db, executorId).orderBy('cycle_entries.cycle').execute();
}

/** Entry of an executor in one cycle; undefined if it has none. */
export function entryOf(
  db: StoreDb,
  executorId: string,
  cycle: number,
): Promise<EntryInTime | undefined> {
  return entriesInTime(db, executorId).where('cycle_entries.cycle', '=', cycle).executeTakeFirst();
}

function entriesInTime(db: StoreDb, executorId: string) {
  return db
    .selectFrom('cycle_entries')
    .innerJoin('cycles', 'cycles.number', 'cycle_entries.cycle')
    .select((eb) => [
      'cycle_entries.cycle',
      'cycle_entries.entry_json',
      'cycle_entries.length_ms',
      eb('cycles.ended_ms', '-', eb.ref('cycle_entries.length_ms')).as('start_ms'),
    ])
    .where('cycle_entries.executor_id', '=', executorId);
}

/** Executors with an entry in any stored cycle. */
export async function executorsInCycles(db: StoreDb): Promise<string[]> {
  const rows = await db.selectFrom('cycle_entries').select('executor_id').distinct().execute();
  return rows.map((row) => row.executor_id);
}

/** Numbers of the newest `count` cycles, oldest first. */
export async function newestCycles(db: StoreDb, count: number): Promise<number[]> {
  const rows = await db
    .selectFrom('cycles')
    .select('number')
    .orderBy('number', 'desc')
    .limit(count)
    .execute();
  return rows.map(({ number }) => number).reverse();
}

/** A cycle with its entries in the order of executor ids; undefined if it was deleted. */
export async function readCycle(db: StoreDb, number: number): Promise<Cycle | undefined> {
  const cycle = await db
    .selectFrom('cycles')
    .select('number')
    .where('number', '=', number)
    .executeTakeFirst();
  if (cycle === undefined) return undefined;
  const rows = await db
    .selectFrom('cycle_entries')
    .select('entry_json')
    .where('cycle', '=', number)
    .orderBy('executor_id')
    .execute();
  // This module wrote the text from a CycleEntry.
  return { number, entries: rows.map((row) => JSON.parse(row.entry_json) as CycleEntry) };
}

/** Returns the given numbers whose cycles are stored, in the same order. */
export async function existingCycles(db: StoreDb, numbers: readonly number[]): Promise<number[]> {
  if (numbers.length === 0) return [];
  const rows = await db
    .selectFrom('cycles')
    .select('number')
    .where('number', 'in', [...numbers])
    .execute();
  const kept = new Set(rows.map(({ number }) => number));
  return numbers.filter((number) => kept.has(number));
}

/** Streams stored cycles, one in memory at a time. Throws if a cycle was deleted after its number was read. */
export async function* cyclesOf(db: StoreDb, numbers: readonly number[]): AsyncGenerator<Cycle> {
  for (const number of numbers) {
    const cycle = await readCycle(db, number);
    if (cycle === undefined) throw new Error(`cycle ${number} was deleted meanwhile`);
    yield cycle;
  }
}

/** Deletes cycles and, by cascade, their entries. */
export async function deleteCyclesBefore(db: StoreDb, beforeMs: number): Promise<void> {
  await db.deleteFrom('cycles').where('ended_ms', '<', beforeMs).execute();
}
