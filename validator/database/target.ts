/** From an address in the configuration to the engine that it names: a PostgreSQL server or a SQLite file. */
import { existsSync } from 'node:fs';
import { Kysely } from 'kysely';
import { ConfigError, type ConfigProblem } from '#shared/config.ts';
import { messageOf } from '#shared/errors.ts';
import { isNoDatabase, openSqliteToRead } from '#shared/sqlite.ts';
import { dialectOver, nodeSqliteDialect } from './node-sqlite-dialect.ts';
import { KINDS, type OwnPlace, refuseOthers } from './ownership.ts';

export type DatabaseTarget = OwnPlace & {
  /** Shows in pg_stat_activity. */
  applicationName: string;
};

/** Whether `address` names a PostgreSQL server rather than a file. */
export function isPostgresAddress(address: string): boolean {
  return /^postgres(?:ql)?:/i.test(address);
}

/**
 * The caller ends it with `destroy()`. Rejects with ConfigError when a PostgreSQL server cannot be used, and where there
 * is something else than an empty database or one of that kind, which then stays as it is.
 */
export async function openDatabase<Tables>(target: DatabaseTarget): Promise<Kysely<Tables>> {
  const { address, variable } = target;
  const [problem] = databaseProblems(variable, address);
  if (problem !== undefined) throw new ConfigError(problem.message);
  if (!isPostgresAddress(address)) {
    // To open a file for writing changes it: its journal becomes ours.
    if (address !== ':memory:' && existsSync(address)) await lookAtFile(target);
    return new Kysely({ dialect: nodeSqliteDialect(address) });
  }
  const { postgresDialect } = await import('./postgres.ts');
  const db = new Kysely<Tables>({ dialect: await postgresDialect(target) });
  return refusedOrOpen(db, target);
}

async function lookAtFile(target: DatabaseTarget): Promise<void> {
  try {
    const file = openSqliteToRead(target.address);
    const db = new Kysely<unknown>({ dialect: dialectOver(file) });
    await (await refusedOrOpen(db, target)).destroy();
  } catch (error) {
    if (!isNoDatabase(error)) throw error;
    throw new ConfigError(
      `${target.address} cannot be read as a ${KINDS[target.kind].name}: ${messageOf(error)}. ` +
        `Correct ${target.variable}.`,
      { cause: error },
    );
  }
}

async function refusedOrOpen<Tables>(
  db: Kysely<Tables>,
  target: DatabaseTarget,
): Promise<Kysely<Tables>> {
  try {
    await refuseOthers(db, target);
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** The problem of the variable that holds an address, or none; for `rules`. */
export function databaseProblems(name: string, address: string | undefined): ConfigProblem[] {
  const problem = address === undefined ? null : addressProblem(address);
  return problem === null ? [] : [{ name, message: `${name}: ${problem}` }];
}

/** What is wrong with an address, without naming it in full: a mistyped one may hold a password. Null: nothing. */
function addressProblem(address: string): string | null {
  if (!isPostgresAddress(address)) {
    const [scheme] = /^[a-z][a-z0-9+.-]*:(?=\/\/)/i.exec(address) ?? [];
    return scheme === undefined ? null : `${scheme}// is not supported, postgres:// is`;
  }
  // pg takes an empty host after a user, with the socket's folder in the query; URL does not.
  const readable = URL.canParse(address.replace('@/', '@host/'));
  return readable
    ? null
    : 'no address of a PostgreSQL server: write postgres://user:password@host:port/database';
}
