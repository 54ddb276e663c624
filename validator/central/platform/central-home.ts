/** Location of the central API's database and secret, for the central API and for commands that open its database. */
import { join } from 'node:path';
import { z } from 'zod';
import {
  ConfigError,
  type ConfigProblem,
  type Environment,
  parseConfig,
  secret,
} from '#shared/runtime/config.ts';
import { isBlank, readOrCreatePrivateFile, readPrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { BackupPlan } from '../../database/database-watch.ts';
import { isPostgresAddress } from '../../database/open-database.ts';
import {
  LockSeconds,
  PoolSize,
  type ServerLimits,
  StatementSeconds,
  serverLimitProblems,
  serverLimitsOf,
} from '../../database/server-limits.ts';

/** `npm start` also reads this variable. */
export const DatabaseVariable = z.object({ CENTRAL_DATABASE: secret(z.string().optional()) });

const MAX_HOURS = 8_760;
const MAX_KEPT = 1_000;

/** Backups of the SQLite database. `npm start` also reads these variables. */
export const DatabaseBackupVariables = z.object({
  /** Hours between two backups of a SQLite database; 0 for none. */
  CENTRAL_DATABASE_BACKUP_HOURS: z.coerce.number().int().min(0).max(MAX_HOURS).default(6),
  /** Number of newest backups that are kept. */
  CENTRAL_DATABASE_BACKUP_KEEP: z.coerce.number().int().min(1).max(MAX_KEPT).default(4),
  /** Folder of the backups. Default: database-backups beside the database. */
  CENTRAL_DATABASE_BACKUP_DIR: z.string().min(1).optional(),
});

/** Returns the plan of the backups. */
export function databaseBackupsOf(variables: z.output<typeof DatabaseBackupVariables>): BackupPlan {
  return {
    hours: variables.CENTRAL_DATABASE_BACKUP_HOURS,
    keep: variables.CENTRAL_DATABASE_BACKUP_KEEP,
    folder: variables.CENTRAL_DATABASE_BACKUP_DIR,
  };
}

/** Returns the plan of the backups that the environment configures. */
export function databaseBackupsIn(environment: Environment): BackupPlan {
  const spec = { schema: DatabaseBackupVariables, prefix: 'CENTRAL_DATABASE_BACKUP_' };
  return databaseBackupsOf(parseConfig(spec, environment));
}

/** Limits of the connections to a PostgreSQL server. `npm start` also reads these variables. */
export const DatabaseLimitVariables = z.object({
  /** Maximum number of connections of a process. */
  CENTRAL_DATABASE_POOL_SIZE: PoolSize,
  /** Time limit of a query in seconds. */
  CENTRAL_DATABASE_STATEMENT_SECONDS: StatementSeconds,
  /** Time limit of the wait for a lock in seconds. */
  CENTRAL_DATABASE_LOCK_SECONDS: LockSeconds,
});

type LimitVariables = z.output<typeof DatabaseLimitVariables>;

/** Problems of the limits in combination; for `rules`. */
export function databaseLimitProblems(right: Partial<LimitVariables>): ConfigProblem[] {
  const { CENTRAL_DATABASE_STATEMENT_SECONDS: statement, CENTRAL_DATABASE_LOCK_SECONDS: lock } =
    right;
  return serverLimitProblems('CENTRAL', { statementSeconds: statement, lockSeconds: lock });
}

/** Returns the limits of the connections to a PostgreSQL server. */
export function databaseLimitsOf(variables: LimitVariables): ServerLimits {
  return serverLimitsOf({
    poolSize: variables.CENTRAL_DATABASE_POOL_SIZE,
    statementSeconds: variables.CENTRAL_DATABASE_STATEMENT_SECONDS,
    lockSeconds: variables.CENTRAL_DATABASE_LOCK_SECONDS,
  });
}

/** Returns the limits that the environment configures. */
export function databaseLimitsIn(environment: Environment): ServerLimits {
  const spec = {
    schema: DatabaseLimitVariables,
    prefix: 'CENTRAL_DATABASE_',
    rules: databaseLimitProblems,
  };
  return databaseLimitsOf(parseConfig(spec, environment));
}

export const DatabasePlace = z.object({
  /** Folder of the SQLite database, the seed and the secret. */
  CENTRAL_HOME: z.string().default('/var/lib/podwright-central'),
  /** `postgres://…` or a SQLite file. Default: `central.db` in CENTRAL_HOME. */
  ...DatabaseVariable.shape,
});

/** Returns `postgres://…` or a file. */
export function centralDatabaseOf(place: z.output<typeof DatabasePlace>): string {
  return place.CENTRAL_DATABASE ?? join(place.CENTRAL_HOME, 'central.db');
}

/** Returns the address of the database, for commands that open only the database. Ignores the other variables. */
export function centralDatabaseIn(environment: Environment): string {
  return centralDatabaseOf(parseConfig({ schema: DatabasePlace, prefix: 'CENTRAL_' }, environment));
}

/** Address of a database, the variable or option that error messages name, and the limits of a server's connections. */
export type CentralPlace = { address: string; variable: string; limits?: ServerLimits };

export type NamedDatabase = {
  /** File of `--database`; null: the database that the environment configures. */
  databaseFile: string | null;
  /** `postgres://…` or a SQLite file. */
  usualDatabase: string;
};

/**
 * Returns the database that a command opens. Throws a ConfigError if an argument contains a server's address, because
 * other users could read it.
 */
export function namedDatabase({ databaseFile, usualDatabase }: NamedDatabase): CentralPlace {
  if (databaseFile !== null && isPostgresAddress(databaseFile)) {
    throw new ConfigError(
      '--database accepts only a file; set CENTRAL_DATABASE to the address of a server',
    );
  }
  return databaseFile === null
    ? { address: usualDatabase, variable: 'CENTRAL_DATABASE' }
    : { address: databaseFile, variable: '--database' };
}

const SECRET_BYTES = 32;

/**
 * Returns the secret that signs sessions and encrypts API keys; creates the file if it is absent. Throws a ConfigError
 * if the file cannot be read, if other users can read it, or if it is too short.
 */
export function centralSecret(path: string, random: Random): Uint8Array {
  return requireWhole(
    path,
    readOrCreatePrivateFile(path, () => random.bytes(SECRET_BYTES), random),
  );
}

/** Like `centralSecret`, but returns null if the file is absent. */
export function readCentralSecret(path: string): Uint8Array | null {
  const secret = readPrivateFile(path);
  return secret === null ? null : requireWhole(path, secret);
}

function requireWhole(path: string, secret: Uint8Array): Uint8Array {
  if (secret.length >= SECRET_BYTES) {
    if (!isBlank(secret)) return secret;
    throw new ConfigError(`${path} has no random bytes: restore the original file`);
  }
  throw new ConfigError(
    `${path} has ${secret.length} of at least ${SECRET_BYTES} bytes: restore the original file`,
  );
}
