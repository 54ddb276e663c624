/**
 * Compiles a query once per engine, for queries that run with every request, rental or check, because Kysely needs longer
 * to build a query than SQLite needs to run it. Passes a list of ids as one parameter, so that the same statement is
 * used for any number of ids.
 */
import {
  type Compilable,
  type CompiledQuery,
  createQueryId,
  type Kysely,
  type QueryResult,
  type RawBuilder,
  type SqlBool,
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

type Plan<Row> = {
  query: CompiledQuery<Row>;
  /** For each parameter the name of its slot, or null for a constant. */
  slots: readonly (string | null)[];
};
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
        plan = { query, slots: query.parameters.map(slotOf) };
        plans.set(engine, plan);
      }
      const { query, sql: text, parameters: constants } = plan.query;
      const queryId = createQueryId();
      const executor = db.getExecutor();
      // Plugins receive this query as they receive every query. No plugin of this program changes a query.
      executor.transformQuery(query, queryId);
      const parameters = plan.slots.map((slot, at) =>
        slot === null ? constants[at] : values[slot],
      );
      return executor.executeQuery<Row>({ query, queryId, sql: text, parameters });
    };
  };
}

/** Optional values of a query. Undefined ones count as not given. */
type Given = Readonly<Record<string, Value | undefined>>;
/** Placeholders of the given values. Kysely does not check their types, so the caller does. */
type GivenSlots = Readonly<Record<string, RawBuilder<never>>>;

/**
 * Returns the function `preparedEach` for the databases with these tables: like `prepared`, for queries that write or
 * compare whichever columns are given. Each set of given values is compiled once; the number of call sites limits it.
 */
export function prepareEachFor<Tables>() {
  return function preparedEach<V extends Values, Row>(
    build: (db: Handle<Tables>, slots: Slots<V>, given: GivenSlots) => Compilable<Row>,
  ) {
    const prepared = prepareFor<Tables>();
    const queries = new Map<string, ReturnType<typeof prepared<Values, Row>>>();
    return (db: Handle<Tables>, given: Given, values: V): Promise<QueryResult<Row>> => {
      const names = Object.keys(given).filter((name) => given[name] !== undefined);
      const key = names.join(' ');
      let query = queries.get(key);
      if (query === undefined) {
        query = prepared<Values, Row>((handle, slots) =>
          build(handle, slots as Slots<V>, columnsFrom(slots, names) as GivenSlots),
        );
        queries.set(key, query);
      }
      return query(db, { ...(given as Values), ...values });
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

/** Returns the ids as a JSON array, for `isListed`. */
export function idsJson(ids: readonly string[]): string {
  return JSON.stringify(ids);
}

/**
 * Returns the condition that a value is among the ids of `idsJson`. PostgreSQL reads the rows from an index even if it
 * has no statistics of the table, because it assumes that the array is short. It scans the whole table for a join with
 * rows from JSON, of which it expects a hundred.
 */
export function isListed(
  db: Pick<Kysely<unknown>, 'getExecutor'>,
  value: RawBuilder<unknown>,
  ids: RawBuilder<string>,
): RawBuilder<SqlBool> {
  return isPostgres(db)
    ? sql`${value} = any(array(select jsonb_array_elements_text(cast(${ids} as jsonb))))`
    : sql`${value} in (select value from json_each(${ids}))`;
}

function slotsFor<V extends Values>(): Slots<V> {
  const slots = new Proxy({}, { get: (_, slot) => sql.val({ slot }) });
  return slots as Slots<V>;
}

function slotOf(parameter: unknown): string | null {
  return isSlot(parameter) ? parameter.slot : null;
}

function isSlot(parameter: unknown): parameter is Slot {
  return typeof parameter === 'object' && parameter !== null && 'slot' in parameter;
}
