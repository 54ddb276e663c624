/** Whether what an address names is ours and of the right kind: our tables never go beside those of something else. */
import { type Kysely, sql } from 'kysely';
import { ConfigError } from '#shared/runtime/config.ts';
import { isPostgres } from './engine.ts';

/** Tables of a kind's first migration that none after it takes away: what has all of them is of that kind. */
export const KINDS = {
  central: {
    name: 'database of a central API',
    tables: ['meta', 'accounts', 'executors', 'gpu_slots', 'pods'],
  },
  ledger: {
    name: 'ledger of a validator',
    tables: ['evidence', 'cycles', 'cycle_entries', 'epochs', 'neurons'],
  },
} as const;

type DatabaseKind = keyof typeof KINDS;

export type OwnPlace = {
  /** `postgres://…`, a SQLite file or `:memory:`. */
  address: string;
  /** The variable or option where the address comes from, for people. */
  variable: string;
  kind: DatabaseKind;
  /** It has to be there already: an empty database is refused, too. */
  isThere?: true;
};

/** Any Kysely or transaction: what is asked here needs no types of tables. */
type AnyDb = Pick<Kysely<unknown>, 'getExecutor'>;

/**
 * One for both kinds, and any constant that nobody else takes: processes that start together look and migrate one after
 * the other, so that two kinds that are given one empty database do not both find it empty.
 */
const MIGRATION_LOCK = 7_306_913;
const MAX_NAMED_TABLES = 3;

/** The first step of a migration, in its transaction. Rejects with ConfigError as `refuseOthers` does. */
export async function beginMigration(tx: AnyDb, place: OwnPlace): Promise<void> {
  // SQLite has one writer at a time, and its transactions begin as writers.
  if (isPostgres(tx)) await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(tx);
  await refuseOthers(tx, place);
}

/** Rejects with ConfigError unless the database is of that kind, or empty where that will do. Reads alone. */
export async function refuseOthers(db: AnyDb, place: OwnPlace): Promise<void> {
  const tables = await namesIn(db, 'tables and views');
  const found = strangersIn(tables, place.kind);
  const isThere = place.isThere === true;
  if (found === null && (tables.length > 0 || !isThere)) return;
  const where = isPostgres(db) ? await currentDatabase(db) : place.address;
  const { name } = KINDS[place.kind];
  const what =
    found === null ? `is empty: no ${name} is there` : `is no ${name}: it holds ${found}`;
  const remedy = isThere ? `Name the ${name}` : `Name an empty database, or the ${name} itself,`;
  throw new ConfigError(
    `${where} ${what}. Nothing was written there. ${remedy} with ${place.variable}.`,
  );
}

/** What is there instead, in words; null where it is of that kind, whatever lies beside it, or empty. */
function strangersIn(tables: readonly string[], kind: DatabaseKind): string | null {
  const isOf = (each: DatabaseKind) => KINDS[each].tables.every((table) => tables.includes(table));
  if (tables.length === 0 || isOf(kind)) return null;
  const other = kind === 'central' ? 'ledger' : 'central';
  if (isOf(other)) return `the ${KINDS[other].name}`;
  const names = tables.slice(0, MAX_NAMED_TABLES).join(', ');
  return `tables or views of something else (${names}${tables.length > MAX_NAMED_TABLES ? ', …' : ''})`;
}

/** In the schema where our tables go, whoever owns them; without those that came with an extension. */
export const tablesIn = (db: AnyDb): Promise<string[]> => namesIn(db, 'tables');

/** A view may be all that another program has there. */
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

async function currentDatabase(db: AnyDb): Promise<string> {
  const query = sql<{ name: string }>`select current_database() as name`;
  const { rows } = await query.execute(db);
  return `the PostgreSQL database ${rows[0]?.name}`;
}
