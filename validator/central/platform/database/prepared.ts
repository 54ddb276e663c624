/**
 * Compiles a query once per engine, for queries that run with every request or rental: Kysely needs longer to build a
 * query than SQLite needs to run it. Also passes a list of rows as one parameter, so that one statement serves any
 * number of rows.
 */
import {
  type Compilable,
  type CompiledQuery,
  createQueryId,
  type Insertable,
  type QueryResult,
  type RawBuilder,
  sql,
} from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import type { Db, Tables } from './tables.ts';

type Value = string | number | null;
type Values = Readonly<Record<string, Value>>;
/** Placeholder of a value until the query is run. */
type Slot = { readonly slot: string };
/** Placeholders of all values while the query is built. */
export type Slots<V extends Values> = { readonly [Name in keyof V]: RawBuilder<V[Name]> };

type Plan<Row> = { query: CompiledQuery<Row>; slots: readonly unknown[] };

/**
 * Compiles the query that `build` returns, and returns a function that runs it. Only the values of its slots may vary.
 */
export function prepared<V extends Values, Row>(
  build: (db: Db, slots: Slots<V>) => Compilable<Row>,
): (db: Db, values: V) => Promise<QueryResult<Row>> {
  // Keyed by isPostgres.
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
    // Plugins receive the query like any other; no plugin of this program changes it.
    db.getExecutor().transformQuery(plan.query.query, queryId);
    const parameters = plan.slots.map((slot) => filled(slot, values));
    return db.executeQuery({ ...plan.query, queryId, parameters });
  };
}

type Insert = (db: Db, values: Values) => Promise<unknown>;

/** Inserts by table and columns. The number of call sites limits its size. */
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
