/** From an address in the configuration to the engine that it names: a PostgreSQL server or a SQLite file. */
import type { Dialect } from 'kysely';
import { ConfigError } from '#shared/config.ts';
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

/** Rejects with ConfigError when a PostgreSQL server cannot be used. */
export async function dialectOf(target: DatabaseTarget): Promise<Dialect> {
  const { address, variable } = target;
  if (!isPostgresAddress(address)) {
    // Not named in full: a mistyped address may hold a password.
    const [scheme] = /^[a-z][a-z0-9+.-]*:(?=\/\/)/i.exec(address) ?? [];
    if (scheme === undefined) return nodeSqliteDialect(address);
    throw new ConfigError(`${variable}: ${scheme}// is not supported, postgres:// is`);
  }
  const { postgresDialect } = await import('./postgres.ts');
  return postgresDialect(target);
}
