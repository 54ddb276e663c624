/** From an address in the configuration to the engine that it names: a PostgreSQL server or a SQLite file. */
import type { Dialect } from 'kysely';
import { ConfigError, type ConfigProblem } from '#shared/config.ts';
import { nodeSqliteDialect } from './node-sqlite-dialect.ts';

export type DatabaseTarget = {
  /** `postgres://…`, a SQLite file or `:memory:`. */
  address: string;
  /** Where the address comes from, for people. */
  variable: string;
  /** Shows in pg_stat_activity. */
  applicationName: string;
};

/** Whether `address` names a PostgreSQL server rather than a file. */
export function isPostgresAddress(address: string): boolean {
  return /^postgres(?:ql)?:/i.test(address);
}

/** Rejects when a PostgreSQL server cannot be used: with ConfigError unless waiting may help. */
export async function dialectOf(target: DatabaseTarget): Promise<Dialect> {
  const { address, variable } = target;
  const [problem] = databaseProblems(variable, address);
  if (problem !== undefined) throw new ConfigError(problem.message);
  if (!isPostgresAddress(address)) return nodeSqliteDialect(address);
  const { postgresDialect } = await import('./postgres.ts');
  return postgresDialect(target);
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
