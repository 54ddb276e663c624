/** SQL that differs between SQLite and PostgreSQL, for migrations of the central API. */
import { type ColumnTypes, POSTGRES_COLUMNS, SQLITE_COLUMNS } from '../../../database/engine.ts';

export type SqlDialect = ColumnTypes & {
  /** Reads a number at a path of a column with JSON text; null if absent. */
  jsonInt(column: string, path: JsonPath): string;
  /** Reads a text at a path of a column with JSON text; null if absent. */
  jsonText(column: string, path: JsonPath): string;
  /** Reads a boolean at a path of a column with JSON text, as 0 or 1; null if absent. */
  jsonFlag(column: string, path: JsonPath): string;
  /**
   * Triggers that increase the `revision` of a row of `table` when the row is inserted, when one of `columns` changes,
   * or when a column of the row's parent changes. If a change commits after a reader has read the revision horizon, the
   * changed row has this revision or a higher one.
   */
  stampRevisions(table: string, columns: readonly string[], parent: Parent): string[];
  /** Triggers that reject updates and deletes of rows of `table`. */
  forbidChanges(table: string): string[];
  /**
   * Replaces the triggers of `forbidChanges` by triggers that permit the deletion of rows for which `condition` holds.
   * The condition refers to the row as `old`.
   */
  permitDeletes(table: string, condition: string): string[];
  /** Adds a column to triggers that `stampRevisions` has created. */
  stampOneMore(table: string, column: string): string[];
};

type Parent = { table: string; columns: readonly string[]; reference: string };

type JsonPath = readonly (string | number)[];

export const SQLITE_DIALECT: SqlDialect = {
  ...SQLITE_COLUMNS,
  jsonInt: sqliteJson,
  jsonText: sqliteJson,
  // json_extract returns booleans as 0 and 1.
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
  permitDeletes: (table, condition) => [
    `drop trigger ${table}_no_delete`,
    `create trigger ${table}_no_delete before delete on ${table} when not (${condition})
      begin select raise(abort, '${table} only grows'); end`,
  ],
  stampOneMore: (table, column) => [
    `create trigger ${table}_change_${column} after update of ${column} on ${table}
      begin ${sqliteStamp(table)} where id = new.id; end`,
  ],
};

export const POSTGRES_DIALECT: SqlDialect = {
  ...POSTGRES_COLUMNS,
  jsonInt: (column, path) => `(${postgresJson(column, path)})::bigint`,
  jsonText: (column, path) => `(${postgresJson(column, path)})`,
  jsonFlag: (column, path) => `(${postgresJson(column, path)})::boolean::int`,
  // The revision is the number of the transaction, because concurrent transactions may commit in any order.
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
  permitDeletes: (table, condition) => [
    `drop trigger ${table}_no_change on ${table}`,
    `create trigger ${table}_no_change before update or truncate on ${table}
      for each statement execute function ${table}_only_grows()`,
    `create function ${table}_keeps_row() returns trigger language plpgsql as $$
      begin
        if not (${condition}) then raise exception '${table} only grows'; end if;
        return old;
      end $$`,
    `create trigger ${table}_no_delete before delete on ${table}
      for each row execute function ${table}_keeps_row()`,
  ],
  stampOneMore: (table, column) => [
    `create trigger ${table}_change_${column} before update of ${column} on ${table}
      for each row execute function ${table}_stamp()`,
  ],
};

/** Sets the highest revision plus one. This is sufficient on SQLite, which has one writer at a time. */
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
