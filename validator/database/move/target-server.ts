/** Writes rows to PostgreSQL and reads them back. */
import { type Kysely, sql } from 'kysely';
import { MOVE_ROW, MOVE_TABLE, MOVE_TABLE_SQL, type MoveRecord } from '../move-record.ts';
import { beginMigration, type DatabaseLocation } from '../ownership.ts';
import { refusal } from './move-error.ts';
import {
  type ColumnType,
  quoted,
  type Row,
  realText,
  sizeOf,
  type Table,
  type Value,
} from './table.ts';

type AnyDb = Pick<Kysely<unknown>, 'getExecutor'>;

/** Progress of a table. `after` is the key of the last copied row; null before the first. */
export type TableProgress = { rows: number; after: readonly string[] | null; isDone: boolean };
export const NOT_BEGUN: TableProgress = { rows: 0, after: null, isDone: false };

const ARRAY_TYPES: Readonly<Record<ColumnType, string>> = {
  INTEGER: 'bigint[]',
  REAL: 'double precision[]',
  TEXT: 'text[]',
  BLOB: 'bytea[]',
};

/** Rows of the first page of a cursor, maximum rows of a page, and bytes that a page should have. */
const FIRST_PAGE_ROWS = 20;
const MAX_PAGE_ROWS = 5_000;
const PAGE_BYTES = 4 * 1024 * 1024;

/** Inserts the rows with one parameter for each column. Rejects with ConfigError for text that PostgreSQL cannot store. */
export async function insertRows(
  tx: AnyDb,
  { name, columns }: Table,
  rows: readonly Row[],
): Promise<void> {
  const names = columns.map((column) => sql.ref(column.name));
  const arrays = columns.map(({ name: column, type }, index) => {
    const values = rows.map((row) => parameterOf(row[index] ?? null, `${name}.${column}`));
    return sql`${values}::${sql.raw(ARRAY_TYPES[type])}`;
  });
  await sql`insert into ${sql.table(name)} (${sql.join(names)})
    select * from unnest(${sql.join(arrays)})`.execute(tx);
}

function parameterOf(value: Value, place: string): string | Uint8Array | null {
  if (value === null || value instanceof Uint8Array) return value;
  if (typeof value === 'number') return realText(value);
  const text = String(value);
  if (!text.includes('\0')) return text;
  throw refusal(
    'text_not_storable',
    `a row has a NUL character in ${place}, which PostgreSQL cannot store: undo the move, remove the character, and move again`,
  );
}

/** Passes all rows of a table to `onRow`, in any order. */
export async function readRows<Tables>(
  db: Kysely<Tables>,
  { name, columns }: Table,
  onRow: (row: Row) => void,
): Promise<void> {
  const names = sql.join(columns.map((column) => sql.ref(column.name)));
  await db
    .transaction()
    .setAccessMode('read only')
    .execute(async (tx) => {
      await sql`declare moved no scroll cursor for select ${names} from ${sql.table(name)}`.execute(
        tx,
      );
      for (let size = FIRST_PAGE_ROWS; ; ) {
        const fetch = sql<Record<string, Value>>`fetch ${sql.raw(String(size))} from moved`;
        const { rows } = await fetch.execute(tx);
        if (rows.length === 0) return;
        const page = rows.map((row) => columns.map((column) => row[column.name] ?? null));
        for (const row of page) onRow(row);
        size = nextSize(page);
      }
    });
}

/** Rows that have PAGE_BYTES if they are as large as those of the page. */
function nextSize(page: readonly Row[]): number {
  const bytes = page.reduce((sum, row) => sum + sizeOf(row), 0);
  return Math.max(1, Math.min(MAX_PAGE_ROWS, Math.floor((PAGE_BYTES * page.length) / bytes)));
}

/** Sets the sequences of a table so that new rows have higher numbers than all earlier rows, deleted ones included. */
export async function setSequences(db: AnyDb, { name }: Table, highest: number): Promise<void> {
  const identity = sql<{ name: string }>`select attname as name from pg_attribute
    where attrelid = ${quoted(name)}::regclass and attidentity <> '' and not attisdropped`;
  const { rows } = await identity.execute(db);
  for (const { name: column } of rows) {
    const last = sql`greatest(${highest}::bigint, (select max(${sql.ref(column)}) from ${sql.table(name)}))`;
    await sql`select setval(pg_get_serial_sequence(${quoted(name)}, ${column}), ${last})
      where ${last} > 0`.execute(db);
  }
}

/** Computes the statistics of a table, without which the server chooses slow plans until it computes them itself. */
export async function analyze(db: AnyDb, { name }: Table): Promise<void> {
  await sql`analyze ${sql.table(name)}`.execute(db);
}

const tableRow = (name: string) => `table ${name}`;

/** Target of a move, and the tables in the order of their references. */
type Beginning = {
  location: DatabaseLocation;
  tables: readonly Table[];
  /** Tables with rows of a new database, in the reverse order. */
  emptied: readonly Table[];
};

/** Removes the rows of a new database, and stores the state of the move and the progress of its tables. */
export async function beginInTarget<Tables>(
  db: Kysely<Tables>,
  record: MoveRecord,
  { location, tables, emptied }: Beginning,
): Promise<void> {
  const rows = [
    [MOVE_ROW, JSON.stringify(record)],
    ...tables.map(({ name }) => [tableRow(name), JSON.stringify(NOT_BEGUN)]),
  ];
  await db.transaction().execute(async (tx) => {
    await beginMigration(tx, location);
    await sql.raw(MOVE_TABLE_SQL).execute(tx);
    for (const { name } of emptied) await sql`delete from ${sql.table(name)}`.execute(tx);
    for (const [name, value] of rows) {
      await sql`insert into ${sql.table(MOVE_TABLE)} (name, value) values (${name}, ${value})`.execute(
        tx,
      );
    }
  });
}

export async function progressOf(db: AnyDb, { name }: Table): Promise<TableProgress> {
  const query = sql<{
    value: string;
  }>`select value from ${sql.table(MOVE_TABLE)} where name = ${tableRow(name)}`;
  const { rows } = await query.execute(db);
  return rows[0] === undefined ? NOT_BEGUN : (JSON.parse(rows[0].value) as TableProgress);
}

/** Replaces the progress of a table. Rejects if another process has replaced it. */
export async function advance(
  tx: AnyDb,
  { name }: Table,
  from: TableProgress,
  to: TableProgress,
): Promise<void> {
  const { numAffectedRows } = await sql`update ${sql.table(MOVE_TABLE)}
    set value = ${JSON.stringify(to)}
    where name = ${tableRow(name)} and value = ${JSON.stringify(from)}`.execute(tx);
  if (numAffectedRows === 1n) return;
  throw refusal('target_in_use', 'another process copies to the same database: let it end');
}

/** Stores the state of the move. */
export async function recordInTarget(tx: AnyDb, record: MoveRecord): Promise<void> {
  await sql`update ${sql.table(MOVE_TABLE)} set value = ${JSON.stringify(record)}
    where name = ${MOVE_ROW}`.execute(tx);
}
