/** Reads the tables of a SQLite file, in an order in which PostgreSQL accepts their rows. */
import {
  type DatabaseSync,
  openSqlite,
  openSqliteReadOnly,
  type StatementSync,
} from '#shared/runtime/sqlite.ts';
import { MOVE_ROW, MOVE_TABLE, MOVE_TABLE_SQL, type MoveRecord } from '../move-record.ts';
import { type ColumnType, quoted, type Row, sizeOf, type Table } from './table.ts';

/** Rows that are copied in one transaction. `last` is the key of the last row, as text. */
export type Batch = { rows: readonly Row[]; last: readonly string[] };

export type SourceFile = ReturnType<typeof openSourceFile>;

/** Limits of a batch. A single row may be larger. */
const BATCH_ROWS = 5_000;
const BATCH_BYTES = 4 * 1024 * 1024;

/** Opens the file read-only; the caller calls `close`. */
export function openSourceFile(path: string) {
  const database = openSqliteReadOnly(path);
  return {
    /** Tables, each after the tables that it references. */
    tables: (): Table[] => inReferenceOrder(database, tableNames(database)).map(tableOf(database)),

    /** Describes a row whose reference has no row; null if there is none. */
    brokenReference(): string | null {
      const row = database.prepare('PRAGMA foreign_key_check').get();
      if (row === undefined) return null;
      return `a row of ${row['table']} references a missing row of ${row['parent']}`;
    },

    count({ name }: Table): number {
      return Number(database.prepare(`SELECT count(*) AS n FROM ${quoted(name)}`).get()?.['n']);
    },

    /** The highest number that each auto-incrementing key has had, by table, also of deleted rows. */
    sequences(): Map<string, number> {
      if (
        database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").get() ===
        undefined
      )
        return new Map();
      const rows = database.prepare('SELECT name, seq FROM sqlite_sequence').all();
      return new Map(rows.map((row) => [String(row['name']), Number(row['seq'])]));
    },

    /** Yields the rows after the key in the order of the primary key; all rows for null. */
    *batches(table: Table, after: readonly string[] | null): Generator<Batch> {
      let rows: Row[] = [];
      let bytes = 0;
      for (const row of rowsAfter(database, table, after)) {
        rows.push(row);
        bytes += sizeOf(row);
        if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
        yield { rows, last: keyOf(table, row) };
        rows = [];
        bytes = 0;
      }
      const last = rows.at(-1);
      if (last !== undefined) yield { rows, last: keyOf(table, last) };
    },

    close: () => database.close(),
  };
}

/** Records the state of the move in the file, durably. */
export function recordInSource(path: string, record: MoveRecord): void {
  const database = openSqlite(path);
  try {
    database.exec(MOVE_TABLE_SQL);
    database
      .prepare(
        `INSERT INTO ${MOVE_TABLE} (name, value) VALUES (:name, :value)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      )
      .run({ name: MOVE_ROW, value: JSON.stringify(record) });
  } finally {
    database.close();
  }
}

/** Removes the record of a move from the file, so that processes may use the file again. */
export function removeSourceRecord(path: string): void {
  const database = openSqlite(path);
  try {
    database.exec(`DROP TABLE IF EXISTS ${MOVE_TABLE}`);
  } finally {
    database.close();
  }
}

function tableNames(database: DatabaseSync): string[] {
  return database
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    .all()
    .map((row) => String(row['name']))
    .filter((name) => name !== MOVE_TABLE);
}

const tableOf =
  (database: DatabaseSync) =>
  (name: string): Table => {
    const columns = database.prepare('SELECT name, type, pk FROM pragma_table_info(?)').all(name);
    const key = columns
      .filter((column) => Number(column['pk']) > 0)
      .toSorted((a, b) => Number(a['pk']) - Number(b['pk']));
    return {
      name,
      // The tables are STRICT, so that these are the only types.
      columns: columns.map((column) => ({
        name: String(column['name']),
        type: String(column['type']).toUpperCase() as ColumnType,
      })),
      key: key.map((column) => String(column['name'])),
    };
  };

/** Only references between tables count: a row that references another row of the same table has the higher key. */
function inReferenceOrder(database: DatabaseSync, names: readonly string[]): string[] {
  const references = new Map(
    names.map((name) => {
      const rows = database
        .prepare('SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)')
        .all(name);
      return [name, rows.map((row) => String(row['table'])).filter((other) => other !== name)];
    }),
  );
  const ordered: string[] = [];
  while (ordered.length < names.length) {
    const ready = names.filter(
      (name) =>
        !ordered.includes(name) && references.get(name)?.every((other) => ordered.includes(other)),
    );
    if (ready.length === 0) throw new Error('the tables reference each other in a cycle');
    ordered.push(...ready);
  }
  return ordered;
}

function rowsAfter(
  database: DatabaseSync,
  { name, columns, key }: Table,
  after: readonly string[] | null,
): Iterable<Row> {
  const keyList = key.map(quoted).join(', ');
  const where = after === null ? '' : `WHERE (${keyList}) > (${key.map(() => '?').join(', ')})`;
  const statement = database.prepare(
    `SELECT ${columns.map((column) => quoted(column.name)).join(', ')} FROM ${quoted(name)} ${where} ORDER BY ${keyList}`,
  );
  const types = key.map((part) => columns.find((column) => column.name === part)?.type);
  const values = (after ?? []).map((text, index) =>
    types[index] === 'INTEGER' ? BigInt(text) : text,
  );
  return arraysOf(statement).iterate(...values) as Iterable<unknown> as Iterable<Row>;
}

function arraysOf(statement: StatementSync): StatementSync {
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  return statement;
}

function keyOf({ columns, key }: Table, row: Row): string[] {
  return key.map((part) => String(row[columns.findIndex(({ name }) => name === part)]));
}
