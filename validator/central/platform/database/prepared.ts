/**
 * Queries of the central database that are compiled once. Also passes a list of rows as one parameter, so that the same
 * statement is used for any number of rows.
 */
import { type Insertable, type RawBuilder, type SqlBool, sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import {
  columnsFrom,
  idsJson,
  isListed,
  prepareEachFor,
  prepareFor,
  type Slots,
  type Values,
} from '../../../database/prepared.ts';
import type { Db, Tables } from './tables.ts';

export { idsJson, isListed, type Slots };

/** Compiles a query of the central database once. */
export const prepared = prepareFor<Tables>();

/** Compiles a query that writes or compares whichever columns are given once for each set of columns. */
export const preparedEach = prepareEachFor<Tables>();

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
      const values = columnsFrom(slots, columns);
      return handle.insertInto(table).values(values as Insertable<Tables[Table]>);
    });
    inserts.set(key, insert);
  }
  await insert(db, row as Values);
}

type ColumnType = 'text' | 'bigint';
type RowOf<C extends Record<string, ColumnType>> = {
  [Name in keyof C]: C[Name] extends 'text' ? string : number;
};

/** Like `isListed`, for a column. */
export function isAmong(db: Db, column: string, ids: RawBuilder<string>): RawBuilder<SqlBool> {
  return isListed(db, sql.ref(column), ids);
}

/**
 * Like `isAmong`, for an update of a table that is also joined with `jsonRows` of the same ids. SQLite needs only the
 * join: with this condition it would start with the table, and parse the JSON again for each of its rows.
 */
export function isAmongJoined(
  db: Db,
  column: string,
  ids: RawBuilder<string>,
): RawBuilder<SqlBool> {
  return isPostgres(db) ? isAmong(db, column, ids) : sql`true`;
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
  // The rows of json_each would be texts, each of which is parsed again.
  return sql`(select ${sql.join(list)} from jsonb_each(${json}))`;
}
