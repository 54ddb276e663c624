/**
 * Compiles a query once per engine, for queries that run with every request, rental or check, because Kysely needs longer
 * to build a query than SQLite needs to run it.
 */
import {
  type Compilable,
  type CompiledQuery,
  createQueryId,
  type Kysely,
  type QueryResult,
  type RawBuilder,
  sql,
  type Transaction,
} from 'kysely';
import { isPostgres } from './engine.ts';

type Value = string | number | null;
export type Values = Readonly<Record<string, Value>>;
/** Placeholder for a value of the query. */
type Slot = { readonly slot: string };
/** Placeholders for all values of the query. */
export type Slots<V extends Values> = { readonly [Name in keyof V]: RawBuilder<V[Name]> };

type Plan<Row> = { query: CompiledQuery<Row>; slots: readonly unknown[] };
type Handle<Tables> = Kysely<Tables> | Transaction<Tables>;

/** Returns the function `prepared` for the databases with these tables. */
export function prepareFor<Tables>() {
  /**
   * Compiles the query that `build` returns, and returns a function that runs it. Only the values of its slots may vary.
   */
  return function prepared<V extends Values, Row>(
    build: (db: Handle<Tables>, slots: Slots<V>) => Compilable<Row>,
  ): (db: Handle<Tables>, values: V) => Promise<QueryResult<Row>> {
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
  };
}

/** Columns to write. Undefined columns are not written. */
type Columns = Readonly<Record<string, Value | undefined>>;
/** Placeholders of the columns. Kysely does not check their types, so the caller does. */
type ColumnSlots = Readonly<Record<string, RawBuilder<never>>>;

/**
 * Returns the function `preparedWrite` for the databases with these tables: like `prepared`, for queries that write
 * whichever columns are given. Each set of columns is compiled once; the number of call sites limits it.
 */
export function prepareWritesFor<Tables>() {
  return function preparedWrite<V extends Values, Row>(
    build: (db: Handle<Tables>, slots: Slots<V>, columns: ColumnSlots) => Compilable<Row>,
  ) {
    const prepared = prepareFor<Tables>();
    const queries = new Map<string, ReturnType<typeof prepared<Values, Row>>>();
    return (db: Handle<Tables>, columns: Columns, values: V): Promise<QueryResult<Row>> => {
      const names = Object.keys(columns).filter((name) => columns[name] !== undefined);
      const key = names.join(' ');
      let query = queries.get(key);
      if (query === undefined) {
        query = prepared<Values, Row>((handle, slots) =>
          build(handle, slots as Slots<V>, columnsFrom(slots, names) as ColumnSlots),
        );
        queries.set(key, query);
      }
      return query(db, { ...(columns as Values), ...values });
    };
  };
}

/** Returns the placeholders of these columns, for the values of an insert or update. */
export function columnsFrom<V extends Values, Name extends keyof V & string>(
  slots: Slots<V>,
  names: readonly Name[],
): { [Column in Name]: RawBuilder<V[Column]> } {
  const columns = Object.fromEntries(names.map((name) => [name, slots[name]]));
  return columns as { [Column in Name]: RawBuilder<V[Column]> };
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
