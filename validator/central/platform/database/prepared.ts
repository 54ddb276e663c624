/**
 * Compiles a query once per engine, for queries that run with every request or rental, because Kysely needs longer to
 * build a query than SQLite needs to run it. Also passes a list of rows as one parameter, so that the same statement is
 * used for any number of rows.
 */
import {
  type Compilable,
  type CompiledQuery,
  createQueryId,
  type Insertable,
  type QueryResult,
  type RawBuilder,
  type SqlBool,
  sql,
} from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import type { Db, Tables } from './tables.ts';

type Value = string | number | null;
type Values = Readonly<Record<string, Value>>;
/** Placeholder for a value of the query. */
type Slot = { readonly slot: string };
/** Placeholders for all values of the query. */
export type Slots<V extends Values> = { readonly [Name in keyof V]: RawBuilder<V[Name]> };

type Plan<Row> = { query: CompiledQuery<Row>; slots: readonly unknown[] };

/**
 * Compiles the query that `build` returns, and returns a function that runs it. Only the values of its slots may vary.
 */
export function prepared<V extends Values, Row>(
  build: (db: Db, slots: Slots<V>) => Compilable<Row>,
): (db: Db, values: V) => Promise<QueryResult<Row>> {
  // Compiled queries by isPostgres.
  const plans = new Map<boolean, Plan<Row>>();
  return async (db, values) => {
    const engine = isPostgres(db);
    let plan = plans.get(engine);
    if (plan === undefined) {
      const query = build(db, slotsFor<V>()).compile();
      plan = { query, slots: query.parameters };
      plans.set(engine, plan);
    }
    const queryId = createQueryId();
    // Plugins receive this query as they receive every query. No plugin of this program changes a query.
    db.getExecutor().transformQuery(plan.query.query, queryId);
    const parameters = plan.slots.map((slot) => filled(slot, values));
    return db.executeQuery({ ...plan.query, queryId, parameters });
  };
}

type Insert = (db: Db, values: Values) => Promise<unknown>;

/** Compiled inserts by table and columns. The number of call sites limits the size of the map. */
const inserts = new Map<string, Insert>();

export async function insertOne<Table extends keyof Tables & string>(
  db: Db,
  table: Table,
  row: Insertable<Tables[Table]>,
): Promise<void> {
  const key = `${table} ${Object.keys(row).join(' ')}`;
  let insert = inserts.get(key);
  if (insert === undefined) {
    const columns = Object.keys(row);
    insert = prepared((handle, slots: Slots<Values>) => {
      const values = Object.fromEntries(columns.map((column) => [column, slots[column]]));
      return handle.insertInto(table).values(values as Insertable<Tables[Table]>);
    });
    inserts.set(key, insert);
  }
  await insert(db, row as Values);
}

function slotsFor<V extends Values>(): Slots<V> {
  const slots = new Proxy({}, { get: (_, slot) => sql.val({ slot }) });
  return slots as Slots<V>;
}

function filled(parameter: unknown, values: Values): unknown {
  return isSlot(parameter) ? values[parameter.slot] : parameter;
}

function isSlot(parameter: unknown): parameter is Slot {
  return typeof parameter === 'object' && parameter !== null && 'slot' in parameter;
}

type ColumnType = 'text' | 'bigint';
type RowOf<C extends Record<string, ColumnType>> = {
  [Name in keyof C]: C[Name] extends 'text' ? string : number;
};

/** Returns the ids as rows with the column `id`, for `jsonRows`. */
export function idsJson(ids: readonly string[]): string {
  return JSON.stringify(ids.map((id) => ({ id })));
}

/**
 * Returns the condition that a column is among the ids of `idsJson`. PostgreSQL reads the rows from an index even if it
 * has no statistics of the table, because it assumes that the array is short. It scans the whole table for a join with
 * rows from JSON, of which it expects a hundred.
 */
export function isAmong(db: Db, column: string, ids: RawBuilder<string>): RawBuilder<SqlBool> {
  const listed = sql`select id from ${jsonRows(db, ids, { id: 'text' })} as input`;
  if (isPostgres(db)) return sql`${sql.ref(column)} = any(array(${listed}))`;
  return sql`${sql.ref(column)} in (${listed})`;
}

/** Returns a table expression over `json`, an array of objects with these members. */
export function jsonRows<C extends Record<string, ColumnType>>(
  db: Db,
  json: RawBuilder<string>,
  columns: C,
): RawBuilder<RowOf<C>> {
  const names = Object.keys(columns);
  if (isPostgres(db)) {
    const list = names.map((name) => sql`${sql.id(name)} ${sql.raw(columns[name] ?? 'text')}`);
    return sql`(select * from jsonb_to_recordset(cast(${json} as jsonb)) as given(${sql.join(list)}))`;
  }
  const list = names.map((name) => sql`value ->> ${sql.lit(`$.${name}`)} as ${sql.id(name)}`);
  return sql`(select ${sql.join(list)} from json_each(${json}))`;
}
