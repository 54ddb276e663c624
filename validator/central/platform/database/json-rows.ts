/** Rows as one parameter, so that one statement takes any number of them and is compiled once. */
import { type RawBuilder, sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import type { Db } from './tables.ts';

type ColumnType = 'text' | 'bigint';
type RowOf<C extends Record<string, ColumnType>> = {
  [Name in keyof C]: C[Name] extends 'text' ? string : number;
};

/** A table to select from: `json` is an array of objects with these members. */
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
