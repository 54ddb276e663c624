/** Where the database of a central API is, for its process and for who looks into it from outside. */
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError, type Environment, parseConfig, secret } from '#shared/runtime/config.ts';
import { readOrCreatePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { isPostgresAddress } from '../../database/open-database.ts';

/** `npm start` reads it, too. */
export const DatabaseVariable = z.object({ CENTRAL_DATABASE: secret(z.string().optional()) });

export const DatabasePlace = z.object({
  /** Folder of its files: SQLite database, seed, secret. */
  CENTRAL_HOME: z.string().default('/var/lib/podwright-central'),
  /** `postgres://…` or a SQLite file; `central.db` in its home when absent. */
  ...DatabaseVariable.shape,
});

/** `postgres://…`, or a file. */
export function centralDatabaseOf(place: z.output<typeof DatabasePlace>): string {
  return place.CENTRAL_DATABASE ?? join(place.CENTRAL_HOME, 'central.db');
}

/** The same for whoever only looks into it, whatever else is configured. */
export function centralDatabaseIn(environment: Environment): string {
  return centralDatabaseOf(parseConfig({ schema: DatabasePlace, prefix: 'CENTRAL_' }, environment));
}

/** An address, and the variable or option that says so. */
export type CentralPlace = { address: string; variable: string };

export type NamedDatabase = {
  /** A file that was named; null: the database of the environment. */
  databaseFile: string | null;
  /** `postgres://…` or a SQLite file. */
  usualDatabase: string;
};

/** Where a command looks. Throws ConfigError for a server's address in an argument, which everybody could read. */
export function namedDatabase({ databaseFile, usualDatabase }: NamedDatabase): CentralPlace {
  if (databaseFile !== null && isPostgresAddress(databaseFile)) {
    throw new ConfigError('--database takes a file; name a server in CENTRAL_DATABASE');
  }
  return databaseFile === null
    ? { address: usualDatabase, variable: 'CENTRAL_DATABASE' }
    : { address: databaseFile, variable: '--database' };
}

// MERGED validator/central/platform/central-home.ts: The deployment's own secret: it signs sessions and seals API keys, in a file that nobody else may read.
const BYTES = 32;

/** Made where there is none. Throws ConfigError for a file that others may read, that we may not, or that holds less. */
export function centralSecret(path: string, random: Random): Uint8Array {
  const secret = readOrCreatePrivateFile(path, () => random.bytes(BYTES), random);
  if (secret.length >= BYTES) return secret;
  throw new ConfigError(
    `${path} holds ${secret.length} bytes of the ${BYTES} of a secret: put back the one it had`,
  );
}
