/** Which database the central API of a marketplace on this machine uses. */
import type { z } from 'zod';
import { ConfigError, type Environment, parseConfig } from '#shared/runtime/config.ts';
import { openCentralDatabase } from '../central/platform/database/database.ts';
import { DatabaseVariable } from '../central/platform/database-place.ts';
import { databaseProblems, isPostgresAddress } from '../database/target.ts';
import type { Home } from './home.ts';

type DatabaseSetting = Partial<z.output<typeof DatabaseVariable>>;

/** `CENTRAL_DATABASE`, or the file in the marketplace's folder. A variable: a password in argv could be read by others. */
export function databaseTarget(environment: Environment, home: Home): string {
  const spec = {
    ...{ schema: DatabaseVariable, prefix: 'CENTRAL_' },
    rules: (right: DatabaseSetting) => databaseProblems('CENTRAL_DATABASE', right.CENTRAL_DATABASE),
  };
  return parseConfig(spec, environment).CENTRAL_DATABASE ?? home.centralDatabase;
}

/** Throws ConfigError for a PostgreSQL database with nodes in it: `--fresh` empties a folder, never a server. */
export async function refuseFreshOn(target: string): Promise<void> {
  if (!isPostgresAddress(target)) return;
  const db = await openCentralDatabase(target);
  try {
    const nodes = await db.selectFrom('executors').select('id').limit(1).execute();
    if (nodes.length === 0) return;
  } finally {
    await db.destroy();
  }
  throw new ConfigError(
    '--fresh does not empty the PostgreSQL database of CENTRAL_DATABASE: ' +
      'drop and create it yourself (dropdb, createdb), then start again with --fresh',
  );
}
