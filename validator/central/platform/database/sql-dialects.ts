/** What of the central API's schema differs between the two engines beyond columns; migrations are written with these. */
import { type ColumnTypes, POSTGRES_COLUMNS, SQLITE_COLUMNS } from '../../../database/engine.ts';

export type SqlWords = ColumnTypes & {
  /** A number at a path of a column of JSON text; null where there is none. */
  jsonInt(column: string, path: JsonPath): string;
  /** The same of a text. */
  jsonText(column: string, path: JsonPath): string;
  /** The same of a boolean, as 0 or 1. */
  jsonFlag(column: string, path: JsonPath): string;
  /**
   * Triggers that write a higher `revision` into a row of `table` when it comes, when one of `columns` changes, or
   * when one of the columns changes of the row of another table that it refers to. Rows whose change is committed
   * after some `horizon` was read have that revision or a higher one (executors/market.store.ts).
   */
  stampRevisions(table: string, columns: readonly string[], parent: Parent): string[];
  /** Triggers that refuse to change or remove a row of `table`, whoever asks. */
  forbidChanges(table: string): string[];
  /** The same for one more column of a table that has them. */
  stampOneMore(table: string, column: string): string[];
};

type Parent = { table: string; columns: readonly string[]; reference: string };

type JsonPath = readonly (string | number)[];

export const SQLITE_WORDS: SqlWords = {
  ...SQLITE_COLUMNS,
  jsonInt: sqliteJson,
  jsonText: sqliteJson,
  // Booleans are 0 and 1 there already.
  jsonFlag: sqliteJson,
  stampRevisions: (table, columns, parent) => {
    const stamp = sqliteStamp(table);
    return [
      `create trigger ${table}_come after insert on ${table}
        begin ${stamp} where id = new.id; end`,
      `create trigger ${table}_change after update of ${columns.join(', ')} on ${table}
        begin ${stamp} where id = new.id; end`,
      `create trigger ${parent.table}_change_${table} after update of ${parent.columns.join(', ')}
        on ${parent.table} begin ${stamp} where ${parent.reference} = new.id; end`,
    ];
  },
  forbidChanges: (table) =>
    ['update', 'delete'].map(
      (change) => `create trigger ${table}_no_${change} before ${change} on ${table}
        begin select raise(abort, '${table} only grows'); end`,
    ),
  stampOneMore: (table, column) => [
    `create trigger ${table}_change_${column} after update of ${column} on ${table}
      begin ${sqliteStamp(table)} where id = new.id; end`,
  ],
};

export const POSTGRES_WORDS: SqlWords = {
  ...POSTGRES_COLUMNS,
  jsonInt: (column, path) => `(${postgresJson(column, path)})::bigint`,
  jsonText: (column, path) => `(${postgresJson(column, path)})`,
  jsonFlag: (column, path) => `(${postgresJson(column, path)})::boolean::int`,
  // The transaction's number: of two at work at once, either may be the first to commit.
  stampRevisions: (table, columns, parent) => [
    `create function ${table}_stamp() returns trigger language plpgsql as $$
      begin new.revision = pg_current_xact_id()::text::bigint; return new; end $$`,
    `create trigger ${table}_change before insert or update of ${columns.join(', ')} on ${table}
      for each row execute function ${table}_stamp()`,
    `create function ${parent.table}_stamp_${table}() returns trigger language plpgsql as $$
      begin
        update ${table} set revision = pg_current_xact_id()::text::bigint
          where ${parent.reference} = new.id;
        return null;
      end $$`,
    `create trigger ${parent.table}_change_${table} after update of ${parent.columns.join(', ')}
      on ${parent.table} for each row execute function ${parent.table}_stamp_${table}()`,
  ],
  forbidChanges: (table) => [
    `create function ${table}_only_grows() returns trigger language plpgsql as $$
      begin raise exception '${table} only grows'; end $$`,
    `create trigger ${table}_no_change before update or delete or truncate on ${table}
      for each statement execute function ${table}_only_grows()`,
  ],
  stampOneMore: (table, column) => [
    `create trigger ${table}_change_${column} before update of ${column} on ${table}
      for each row execute function ${table}_stamp()`,
  ],
};

/** One writer at a time: the highest number so far and one more. */
function sqliteStamp(table: string): string {
  return `update ${table} set revision = (select max(revision) from ${table}) + 1`;
}

function sqliteJson(column: string, path: JsonPath): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`));
  return `json_extract(${column}, '$${steps.join('')}')`;
}

function postgresJson(column: string, path: JsonPath): string {
  return `${column}::json #>> '{${path.join(',')}}'`;
}
