/**
 * Checks that a database is ours and of the expected kind, so that our tables are never created beside foreign tables.
 */
import { type Kysely, sql } from 'kysely';
import { ConfigError } from '#shared/runtime/config.ts';
import { isPostgres } from './engine.ts';
import { MOVE_TABLE, moveProblem, readMoveRecord } from './move-record.ts';

/**
 * Kinds of databases. `tables`: those that the first migration creates and no later one drops, which identify the kind.
 * `option`: the option of commands that names a file. `setting`: the variable that accepts the address of a server. `restore`: the command that restores a backup; the file follows.
 * `move`: the command that moves a file to a server.
 */
export const KINDS = {
  central: {
    name: 'database of a central API',
    tables: ['meta', 'accounts', 'executors', 'gpu_slots', 'pods'],
    option: 'database',
    setting: 'CENTRAL_DATABASE',
    restore: 'npm run central -- restore --database',
    move: 'npm run central -- move',
  },
  evidence: {
    name: 'evidence store of a validator',
    tables: ['evidence', 'cycles', 'cycle_entries', 'epochs', 'neurons'],
    option: 'ledger',
    setting: 'VALIDATOR_DATABASE',
    restore: 'npm run validator -- restore --ledger',
    move: 'npm run validator -- move',
  },
} as const;

type DatabaseKind = keyof typeof KINDS;

export type DatabaseLocation = {
  /** `postgres://…`, a SQLite file, `:memory:` or `:temporary:`. */
  address: string;
  /** The variable or option that set the address, for error messages. */
  variable: string;
  kind: DatabaseKind;
  /** Rejects an empty database too. */
  mustExist?: true;
  /** Accepts a database that has been moved, or to which an incomplete move copies. */
  inMove?: true;
};

/** The database was moved, or an incomplete move copies it. The message has the other database and the remedy. */
export class MovedDatabase extends ConfigError {}

/** Any Kysely handle or transaction, whatever its tables. */
type AnyDb = Pick<Kysely<unknown>, 'getExecutor'>;

/**
 * Advisory lock for databases of both kinds; an arbitrary constant that no other program uses. Processes that start
 * together check and migrate one after the other, so two kinds that share one empty database cannot both find it empty.
 */
const MIGRATION_LOCK = 7_306_913;
const MAX_NAMED_TABLES = 3;

/**
 * Starts a migration inside its transaction. Rejects as `requireOwnDatabase` does, and with an error after which a
 * retry may succeed if the server is read-only.
 */
export async function beginMigration(tx: AnyDb, location: DatabaseLocation): Promise<void> {
  // SQLite allows one writer at a time, and its transactions begin as writers.
  if (isPostgres(tx)) {
    await requireWritable(tx, location);
    await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(tx);
  }
  await requireOwnDatabase(tx, location);
}

async function requireWritable(tx: AnyDb, { variable, kind }: DatabaseLocation): Promise<void> {
  const { rows } = await sql<{
    transaction_read_only: string;
  }>`show transaction_read_only`.execute(tx);
  if (rows[0]?.transaction_read_only !== 'on') return;
  const problem = `${variable}: the ${KINDS[kind].name} is read-only on this PostgreSQL server, as on a standby`;
  throw new Error(`${problem}; name the primary server, or promote this one`);
}

/**
 * Rejects with ConfigError if the database is of another kind, if it is empty and `mustExist` is set, or if it has been
 * moved or an incomplete move copies to it. Writes nothing.
 */
export async function requireOwnDatabase(db: AnyDb, location: DatabaseLocation): Promise<void> {
  const tables = await namesIn(db, 'tables and views');
  const found = foreignContents(tables, location.kind);
  const mustExist = location.mustExist === true;
  if (found === null && (tables.length > 0 || !mustExist)) {
    if (tables.includes(MOVE_TABLE)) await requireMoved(db, location);
    return;
  }
  const where = await placeOf(db, location);
  const { name } = KINDS[location.kind];
  const what =
    found === null ? `is empty and has no ${name}` : `is not the ${name}: it holds ${found}`;
  const remedy = mustExist ? `Name the ${name}` : `Name an empty database, or the ${name} itself,`;
  throw new ConfigError(
    `${where} ${what}. Nothing was written there. ${remedy} with ${location.variable}.`,
  );
}

async function requireMoved(db: AnyDb, location: DatabaseLocation): Promise<void> {
  if (location.inMove === true) return;
  const record = await readMoveRecord(db);
  const { move, option, setting: usual } = KINDS[location.kind];
  // An option names a file only.
  const setting = location.variable.startsWith('--') ? usual : location.variable;
  const words = { place: await placeOf(db, location), move, option, setting };
  const problem = record === null ? null : moveProblem(record, words);
  if (problem !== null) throw new MovedDatabase(problem);
}

/**
 * Describes the database's foreign contents; null if it is empty or of the kind, even with tables of other programs
 * beside ours.
 */
function foreignContents(tables: readonly string[], kind: DatabaseKind): string | null {
  const isOf = (each: DatabaseKind) => KINDS[each].tables.every((table) => tables.includes(table));
  if (tables.length === 0 || isOf(kind)) return null;
  const other = kind === 'central' ? 'evidence' : 'central';
  if (isOf(other)) return `the ${KINDS[other].name}`;
  const names = tables.slice(0, MAX_NAMED_TABLES).join(', ');
  return `tables or views of another program (${names}${tables.length > MAX_NAMED_TABLES ? ', …' : ''})`;
}

/** Tables in the schema in use, of any owner; tables of extensions are excluded. */
export const tablesIn = (db: AnyDb): Promise<string[]> => namesIn(db, 'tables');

/** Views count as foreign tables: another program may have only views in the database. */
const RELATIONS = {
  tables: { postgres: ['r', 'p', 'f'], sqlite: ['table'] },
  'tables and views': { postgres: ['r', 'p', 'f', 'v', 'm'], sqlite: ['table', 'view'] },
} as const;

async function namesIn(db: AnyDb, what: keyof typeof RELATIONS): Promise<string[]> {
  const { postgres, sqlite } = RELATIONS[what];
  const query = isPostgres(db)
    ? sql<{ name: string }>`select relname as name from pg_class
        join pg_namespace on pg_namespace.oid = relnamespace
        where nspname = current_schema() and relkind in (${sql.join(postgres)}) and not exists (
          select 1 from pg_depend
          where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')
        order by relname`
    : sql<{ name: string }>`select name from sqlite_master
        where type in (${sql.join(sqlite)}) and name not like 'sqlite_%' order by name`;
  const { rows } = await query.execute(db);
  return rows.map(({ name }) => name);
}

async function placeOf(db: AnyDb, { address }: DatabaseLocation): Promise<string> {
  if (!isPostgres(db)) return address;
  const query = sql<{ name: string }>`select current_database() as name`;
  const { rows } = await query.execute(db);
  return `the PostgreSQL database ${rows[0]?.name}`;
}
