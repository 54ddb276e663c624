/** Location of the central API's database and secret, for its process and for commands that open its database. */
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError, type Environment, parseConfig, secret } from '#shared/runtime/config.ts';
import { readOrCreatePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { isPostgresAddress } from '../../database/open-database.ts';

/** Also read by `npm start`. */
export const DatabaseVariable = z.object({ CENTRAL_DATABASE: secret(z.string().optional()) });

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

/** For commands that only open the database: ignores the other variables. */
export function centralDatabaseIn(environment: Environment): string {
  return centralDatabaseOf(parseConfig({ schema: DatabasePlace, prefix: 'CENTRAL_' }, environment));
}

/** An address, and the variable or option that names it in error messages. */
export type CentralPlace = { address: string; variable: string };

export type NamedDatabase = {
  /** File of `--database`; null for the database of the environment. */
  databaseFile: string | null;
  /** `postgres://…` or a SQLite file. */
  usualDatabase: string;
};

/** Database that a command opens. Throws ConfigError for a server's address in an argument, which other users could read. */
export function namedDatabase({ databaseFile, usualDatabase }: NamedDatabase): CentralPlace {
  if (databaseFile !== null && isPostgresAddress(databaseFile)) {
    throw new ConfigError('--database takes a file; name a server in CENTRAL_DATABASE');
  }
  return databaseFile === null
    ? { address: usualDatabase, variable: 'CENTRAL_DATABASE' }
    : { address: databaseFile, variable: '--database' };
}

const SECRET_BYTES = 32;

/**
 * Returns the secret that signs sessions and encrypts API keys, and creates the file if it is absent. Throws
 * ConfigError if other users can read the file, if it cannot be read, or if it is too short.
 */
export function centralSecret(path: string, random: Random): Uint8Array {
  const secret = readOrCreatePrivateFile(path, () => random.bytes(SECRET_BYTES), random);
  if (secret.length >= SECRET_BYTES) return secret;
  throw new ConfigError(
    `${path} holds ${secret.length} bytes of the ${SECRET_BYTES} of a secret: restore the original file`,
  );
}
