/**
 * Opens the database at a configured address: a PostgreSQL server, or a SQLite file, which one process at a time may
 * lock.
 */
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Dialect, Kysely, type LogEvent } from 'kysely';
import { systemClock } from '#shared/runtime/clock.ts';
import { ConfigError, type ConfigProblem } from '#shared/runtime/config.ts';
import { type DatabaseDamage, damageText } from '#shared/runtime/database-damage.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';
import { giveToOwnerOfFolder, replacePrivateFile } from '#shared/runtime/files.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  isEmptyDatabase,
  isNotADatabase,
  isOpenFailure,
  isTransient,
  lockExclusively,
  needsRollback,
  openSqliteReadOnly,
} from '#shared/runtime/sqlite.ts';
import { isDamage, stopWrites } from './engine.ts';
import { inFileThread } from './file-thread.ts';
import { dialectOver, nodeSqliteDialect } from './node-sqlite-dialect.ts';
import { type DatabaseLocation, KINDS, MovedDatabase, requireOwnDatabase } from './ownership.ts';
import type { ServerLimits } from './server-limits.ts';

export type DatabaseTarget = DatabaseLocation & {
  /** Name shown in pg_stat_activity. */
  applicationName: string;
  /** Opens a file read-only, so that it can be read beside the process that writes it. */
  readOnly?: true;
  /** Receives the damage that queries find. A damaged file is not written to any more. */
  damage?: DatabaseDamage | undefined;
  /** Limits of the connections to a PostgreSQL server; undefined: the defaults. */
  limits?: ServerLimits | undefined;
  /** Replaces the dialect through which the database is written, such as by `serialDialect`. */
  through?: ((dialect: Dialect) => Dialect) | undefined;
};

/** Error codes of a path that this user cannot create or write, now or after a restart. */
const UNUSABLE_PATH = ['EACCES', 'EISDIR', 'ENOENT', 'ENOTDIR', 'EPERM', 'EROFS'];

/**
 * Code of all SQLite errors. `lockExclusively` has created the lock file before it calls SQLite, so such an error means
 * that another process has the lock.
 */
const LOCKED = 'ERR_SQLITE_ERROR';

/** Returns true if `address` names a PostgreSQL server, false for a file. */
export function isPostgresAddress(address: string): boolean {
  return /^postgres(?:ql)?:/i.test(address);
}

/**
 * Opens the database; the caller closes it with `destroy()`. Rejects if a PostgreSQL server cannot be used: with
 * ConfigError, or with another error if a retry may succeed. Rejects with ConfigError for a file that cannot be opened,
 * and for a database of another kind, which stays unchanged. Accepts an empty database unless `mustExist` is set.
 */
export async function openDatabase<Tables>(target: DatabaseTarget): Promise<Kysely<Tables>> {
  const { address, variable } = target;
  const problem = addressProblem(address);
  if (problem !== null) throw new ConfigError(`${variable}: ${problem}`);
  if (!isPostgresAddress(address)) return openFile(target);
  const { postgresDialect } = await import('./postgres.ts');
  const dialect = await postgresDialect(target);
  const { through = (same) => same } = target;
  const db = new Kysely<Tables>({ dialect: through(dialect), log: damageFinder(target) });
  return closedUnlessOwn(db, target);
}

async function openFile<Tables>(target: DatabaseTarget): Promise<Kysely<Tables>> {
  const { address } = target;
  if (target.readOnly === true) return openToRead(target);
  // Opening a file for writing changes it: SQLite switches its journal mode. Check it read-only first.
  if (!isTransient(address)) await checkFile(target);
  const { through = (same) => same } = target;
  try {
    const db = new Kysely<Tables>({
      dialect: through(nodeSqliteDialect(address)),
      log: damageFinder(target),
    });
    // Writes would spread the damage. A failure means that nothing can be written anyway.
    target.damage?.onRecord(() => void stopWrites(db).catch(() => undefined));
    return db;
  } catch (error) {
    const { cause } = error as Error;
    if (!isOpenFailure(cause) && !UNUSABLE_PATH.some((code) => hasCode(cause, code))) throw error;
    throw new ConfigError(
      `${target.variable}: ${messageOf(error)}. ` +
        `Make the file and its folder writable for the user of this process, or name another place with ${target.variable}.`,
      { cause },
    );
  }
}

/** Records the damage that queries find. */
function damageFinder({ damage }: DatabaseTarget): (event: LogEvent) => void {
  return (event) => {
    if (event.level === 'error' && isDamage(event.error)) damage?.record(messageOf(event.error));
  };
}

/** Rejects with ConfigError unless the file exists and is a database of the kind. */
export async function requireDatabaseFile(location: DatabaseLocation): Promise<void> {
  if (!existsSync(location.address)) {
    throw new ConfigError(`there is no ${KINDS[location.kind].name} ${location.address}`);
  }
  await checkFile({ ...location, mustExist: true });
}

/** Describes where a database file was moved, with the remedy; null for other files, also damaged and missing ones. */
export async function moveNotice(location: DatabaseLocation): Promise<string | null> {
  try {
    await requireDatabaseFile(location);
    return null;
  } catch (error) {
    return error instanceof MovedDatabase ? error.message : null;
  }
}

/** Checks an existing file. Rejects as `openDatabase` does if the file is not ours. */
async function checkFile(location: DatabaseLocation): Promise<void> {
  if (!existsSync(location.address)) return;
  try {
    await (await openToRead(location)).destroy();
  } catch (error) {
    // A first start that was killed leaves a journal to roll back. The next start may open the file for writing; its
    // migration then verifies again that the database is ours.
    if (!(error instanceof Error && needsRollback(error.cause))) throw error;
  }
}

async function openToRead<Tables>(location: DatabaseLocation): Promise<Kysely<Tables>> {
  const { address } = location;
  try {
    if (!statSync(address).isFile()) throw unreadable(location, 'it is not a file');
    const db = new Kysely<Tables>({ dialect: dialectOver(openSqliteReadOnly(address)) });
    return await closedUnlessOwn(db, location);
  } catch (error) {
    if (!isNotADatabase(error) && !isOpenFailure(error)) throw error;
    throw unreadable(location, messageOf(error), error);
  }
}

function unreadable({ address, kind, variable }: DatabaseLocation, why: string, cause?: unknown) {
  // SQLite creates files beside a database even to read it.
  const remedy = isOpenFailure(cause)
    ? `Copy the file into a folder that this user may write, and name the copy with ${variable}`
    : isNotADatabase(cause)
      ? `Correct ${variable}. If the file is damaged, restore it: ${KINDS[kind].restore} ${address}`
      : `Correct ${variable}`;
  const message = `${address} cannot be read as the ${KINDS[kind].name}: ${why}. ${remedy}.`;
  return new ConfigError(message, { cause });
}

async function closedUnlessOwn<Tables>(
  db: Kysely<Tables>,
  location: DatabaseLocation,
): Promise<Kysely<Tables>> {
  try {
    await requireOwnDatabase(db, location);
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** Lock of a database file; `close` releases it. */
export type FileLock = { close(): void };

/**
 * Locks a database file for this process until `close()` or until the process ends. Readers need no lock, and neither
 * do processes on a PostgreSQL server. Rejects if another process holds the lock, with ConfigError if no lock file can
 * be created beside the database.
 */
export function lockFile({ address, variable, kind }: DatabaseLocation): FileLock {
  // An address that is in memory or that `openDatabase` rejects names no file.
  if (!isFileAddress(variable, address)) return { close: () => undefined };
  try {
    const path = `${address}.lock`;
    const lock = lockExclusively(path);
    giveToOwnerOfFolder(path);
    return { close: () => lock.close() };
  } catch (cause) {
    if (!hasCode(cause, LOCKED)) {
      throw new ConfigError(`${variable}: ${address} cannot be used: ${messageOf(cause)}`, {
        cause,
      });
    }
    const message = `another process runs on the ${KINDS[kind].name} in ${address}: stop it, or name another place with ${variable}`;
    throw new Error(message, { cause });
  }
}

/**
 * Locks a home whose process has its database in another file: a second process would use the same keys and folders.
 * `usual` is the database that the home has by default. Processes on a server share a home without a lock. Rejects as
 * `lockFile` does.
 */
export function lockHome(usual: DatabaseLocation, address: string): FileLock {
  const isUsual = resolve(address) === resolve(usual.address);
  if (isUsual || !isFileAddress(usual.variable, address)) return { close: () => undefined };
  return lockFile(usual);
}

/**
 * Locks a database file as `lockFile` does. Rejects also as `openDatabase` does for a database of another kind, beside
 * which no lock file remains, and with ConfigError for a file that is damaged, or missing or empty although it once had
 * contents. `isNew` accepts a missing or empty file. `isChecked` of the result is false if the file was too large to
 * check it in time.
 */
export async function lockDatabaseFile(
  location: DatabaseLocation,
  { isNew = false }: { isNew?: boolean } = {},
): Promise<FileLock & { isChecked: boolean }> {
  const { address, variable } = location;
  if (!isFileAddress(variable, address)) return { ...lockFile(location), isChecked: true };
  const loss = isNew ? null : lossText(location);
  if (loss !== null) throw new ConfigError(loss);
  await checkFile(location);
  const lock = lockFile(location);
  try {
    return { ...lock, isChecked: !existsSync(address) || (await requireIntact(location)) };
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** Returns true if the address names a file, whether or not the file exists. */
export function isFileAddress(variable: string, address: string): boolean {
  return databaseProblems(variable, address).length === 0 && !isPostgresAddress(address);
}

/** The file that shows that a database existed. It is beside the database, and not part of it. */
const CREATED = '.created';
const CREATED_TEXT =
  'This file shows that the database beside it was created. Without that database the program does not start.\n';

/** Records durably that the database file exists. Call it once the database has its tables. */
export function markCreated({ address, variable }: Omit<DatabaseLocation, 'kind'>): void {
  const marker = `${address}${CREATED}`;
  if (!isFileAddress(variable, address) || existsSync(marker)) return;
  replacePrivateFile(marker, CREATED_TEXT, systemRandom);
  giveToOwnerOfFolder(marker);
}

/**
 * Describes that a file is missing, or empty, although it once had contents; null if it is intact or never existed. A
 * damaged file counts as intact here.
 */
export function lossText({ address, kind }: Omit<DatabaseLocation, 'variable'>): string | null {
  if (!existsSync(`${address}${CREATED}`)) return null;
  const state = existsSync(address) ? (isEmptyDatabase(address) ? 'empty' : null) : 'missing';
  if (state === null) return null;
  return (
    `the ${KINDS[kind].name} ${address} is ${state}, although ${address}${CREATED} shows that it had contents. ` +
    `Restore a backup: ${KINDS[kind].restore} ${address}. To begin with an empty database, start once with --fresh.`
  );
}

/**
 * Throws ConfigError for a missing key file of a process whose database was created, because another key would take its
 * place. `isNew` accepts a missing file.
 */
export function requireKeyFile(
  path: string,
  { address, variable }: Omit<DatabaseLocation, 'kind'>,
  { isNew }: { isNew: boolean },
): void {
  const marker = `${address}${CREATED}`;
  if (isNew || existsSync(path) || !isFileAddress(variable, address) || !existsSync(marker)) return;
  throw new ConfigError(
    `the key ${path} is missing, although ${marker} shows that this process has run. ` +
      'Restore the file from a backup. To begin with a new key, start once with --fresh.',
  );
}

/**
 * Time for which the start waits for the check of the file. The check of a larger file continues while the process
 * serves.
 */
const START_CHECK_MS = 20_000;

/** Returns false if the check has not ended in time. Rejects with ConfigError for a damaged file. */
async function requireIntact({ address, kind }: DatabaseLocation): Promise<boolean> {
  const signal = systemClock.deadline(START_CHECK_MS);
  const finding = await inFileThread({ kind: 'check', path: address }, signal).catch((error) => {
    if (signal.aborted) return null;
    throw error;
  });
  if (finding === null) return !signal.aborted;
  const { database, remedy } = damageWords(address, kind);
  throw new ConfigError(damageText(database, finding, remedy));
}

/** Words for damage of a database: its kind and place, and the remedy. */
export function damageWords(address: string, kind: DatabaseLocation['kind']) {
  const { name, restore } = KINDS[kind];
  if (isPostgresAddress(address)) {
    const remedy =
      'Restore the database with the backups of your PostgreSQL server, then start again.';
    return { database: `${name} on the PostgreSQL server`, remedy };
  }
  const remedy = `Stop the process and restore the newest backup: ${restore} ${address}`;
  return { database: `${name} ${address}`, remedy };
}

/** Problems of the variable that holds a process's database address; for `rules` of its configuration. */
export function databaseProblems(name: string, address: string | undefined): ConfigProblem[] {
  if (address === undefined) return [];
  const problem = isTransient(address)
    ? 'everything would be lost when the process ends: name a file, or a PostgreSQL server'
    : addressProblem(address);
  return problem === null ? [] : [{ name, message: `${name}: ${problem}` }];
}

/**
 * Describes what is wrong with an address; null if nothing. Never quotes it: a mistyped address may contain a password.
 */
function addressProblem(address: string): string | null {
  if (!isPostgresAddress(address)) {
    const [scheme] = /^[a-z][a-z0-9+.-]*:(?=\/\/)/i.exec(address) ?? [];
    if (scheme !== undefined) return `${scheme}// is not supported, postgres:// is`;
    // SQLite parses `file:` as an address with options, such as one for a database in memory.
    return /^file:/i.test(address) ? 'write the path of the file alone, without file:' : null;
  }
  // pg accepts an empty host after a user, with the socket's folder in the query; URL does not.
  const readable = URL.canParse(address.replace('@/', '@host/'));
  return readable
    ? null
    : 'not the address of a PostgreSQL server: write postgres://user:password@host:port/database';
}
