/** From an address in the configuration to the engine that it names: a PostgreSQL server or a SQLite file. */
import { existsSync, statSync } from 'node:fs';
import { Kysely } from 'kysely';
import { ConfigError, type ConfigProblem } from '#shared/runtime/config.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';
import {
  isNoDatabase,
  isNotOpened,
  isToBeRolledBack,
  openSqliteToRead,
} from '#shared/runtime/sqlite.ts';
import { dialectOver, nodeSqliteDialect } from './node-sqlite-dialect.ts';
import { KINDS, type OwnPlace, refuseOthers } from './ownership.ts';

export type DatabaseTarget = OwnPlace & {
  /** Shows in pg_stat_activity. */
  applicationName: string;
  /** A file is opened for reading alone, beside the process whose it is. */
  onlyReads?: true;
};

/** Of a path where no process of this user makes or writes a file, whenever it is started. */
const REFUSED = ['EACCES', 'EISDIR', 'ENOENT', 'ENOTDIR', 'EPERM', 'EROFS'];

/** Whether `address` names a PostgreSQL server rather than a file. */
export function isPostgresAddress(address: string): boolean {
  return /^postgres(?:ql)?:/i.test(address);
}

/**
 * The caller ends it with `destroy()`. Rejects when a PostgreSQL server cannot be used, with ConfigError unless waiting may
 * help; with ConfigError for a file that cannot be opened, and where there is something else than a database of that kind,
 * or an empty one where that will do: it then stays as it is.
 */
export async function openDatabase<Tables>(target: DatabaseTarget): Promise<Kysely<Tables>> {
  const { address, variable } = target;
  const problem = addressProblem(address);
  if (problem !== null) throw new ConfigError(`${variable}: ${problem}`);
  if (!isPostgresAddress(address)) return openFile(target);
  const { postgresDialect } = await import('./postgres.ts');
  const db = new Kysely<Tables>({ dialect: await postgresDialect(target) });
  return refusedOrOpen(db, target);
}

async function openFile<Tables>(target: DatabaseTarget): Promise<Kysely<Tables>> {
  const { address } = target;
  if (target.onlyReads === true) return openToRead(target);
  // To open a file for writing changes it: its journal becomes ours.
  if (address !== ':memory:') await lookAtFile(target);
  try {
    return new Kysely({ dialect: nodeSqliteDialect(address) });
  } catch (error) {
    const { cause } = error as Error;
    if (!isNotOpened(cause) && !REFUSED.some((code) => hasCode(cause, code))) throw error;
    throw new ConfigError(
      `${target.variable}: ${messageOf(error)}. ` +
        `Have the file and its folder written by the user of this process, or name another place with ${target.variable}.`,
      { cause },
    );
  }
}

/** Rejects as `openDatabase` does where there is a file that it refuses. */
export async function lookAtFile(place: OwnPlace): Promise<void> {
  if (!existsSync(place.address)) return;
  try {
    await (await openToRead(place)).destroy();
  } catch (error) {
    // The first start, when it dies, leaves this: the next one may write, and its migration looks again.
    if (!(error instanceof Error && isToBeRolledBack(error.cause))) throw error;
  }
}

async function openToRead<Tables>(target: OwnPlace): Promise<Kysely<Tables>> {
  const { address } = target;
  try {
    if (!statSync(address).isFile()) throw unreadable(target, 'it is no file');
    const db = new Kysely<Tables>({ dialect: dialectOver(openSqliteToRead(address)) });
    return await refusedOrOpen(db, target);
  } catch (error) {
    if (!isNoDatabase(error) && !isNotOpened(error)) throw error;
    throw unreadable(target, messageOf(error), error);
  }
}

function unreadable({ address, kind, variable }: OwnPlace, why: string, cause?: unknown) {
  // SQLite makes files beside it to read one, too.
  const remedy = isNotOpened(cause)
    ? `Copy it into a folder that this user may write, and name that with ${variable}`
    : `Correct ${variable}`;
  const message = `${address} cannot be read as a ${KINDS[kind].name}: ${why}. ${remedy}.`;
  return new ConfigError(message, { cause });
}

async function refusedOrOpen<Tables>(
  db: Kysely<Tables>,
  target: OwnPlace,
): Promise<Kysely<Tables>> {
  try {
    await refuseOthers(db, target);
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** The problem of the variable that holds the address of a process's database, or none; for `rules`. */
export function databaseProblems(name: string, address: string | undefined): ConfigProblem[] {
  if (address === undefined) return [];
  const problem =
    address === ':memory:'
      ? 'all would be gone when the process ends: name a file, or a PostgreSQL server'
      : addressProblem(address);
  return problem === null ? [] : [{ name, message: `${name}: ${problem}` }];
}

/** What is wrong with an address wherever it comes from, without naming it in full: a mistyped one may hold a password. Null: nothing. */
function addressProblem(address: string): string | null {
  if (!isPostgresAddress(address)) {
    const [scheme] = /^[a-z][a-z0-9+.-]*:(?=\/\/)/i.exec(address) ?? [];
    if (scheme !== undefined) return `${scheme}// is not supported, postgres:// is`;
    // SQLite would take it for an address with options, such as that of a database in memory.
    return /^file:/i.test(address) ? 'write the path of the file alone, without file:' : null;
  }
  // pg takes an empty host after a user, with the socket's folder in the query; URL does not.
  const readable = URL.canParse(address.replace('@/', '@host/'));
  return readable
    ? null
    : 'no address of a PostgreSQL server: write postgres://user:password@host:port/database';
}
