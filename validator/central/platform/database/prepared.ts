/**
 * Queries of the central database that are compiled once. Also passes a list of rows as one parameter, so that the same
 * statement is used for any number of rows.
 */
import { type Insertable, type RawBuilder, type SqlBool, sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import {
  columnsFrom,
  prepareFor,
  prepareWritesFor,
  type Slots,
  type Values,
} from '../../../database/prepared.ts';
import type { Db, Tables } from './tables.ts';

export type { Slots };

/** Compiles a query of the central database once. */
export const prepared = prepareFor<Tables>();

/** Compiles a query that writes whichever columns are given once for each set of columns. */
export const preparedWrite = prepareWritesFor<Tables>();

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
  return isListed(db, sql.ref(column), ids);
}

/** Like `isAmong`, for an expression. */
export function isListed(
  db: Db,
  value: RawBuilder<unknown>,
  ids: RawBuilder<string>,
): RawBuilder<SqlBool> {
  const listed = sql`select id from ${jsonRows(db, ids, { id: 'text' })} as input`;
  if (isPostgres(db)) return sql`${value} = any(array(${listed}))`;
  return sql`${value} in (${listed})`;
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
