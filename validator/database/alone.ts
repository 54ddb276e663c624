/** A database in a file has one process at a time that runs on it; those of a PostgreSQL server know of each other. */
import { ConfigError } from '#shared/config.ts';
import { hasCode, messageOf } from '#shared/errors.ts';
import { lockExclusively } from '#shared/sqlite.ts';
import { databaseProblems, isPostgresAddress } from './target.ts';

/** Of anything that SQLite refuses: the lock's file is there and open by then. */
const LOCKED = 'ERR_SQLITE_ERROR';

/**
 * Until `close()` or the end of the process, however it ends. `kept`: what is in it, for people. Throws when another
 * process has it, and ConfigError where no file can be made beside it. Who only looks into the database asks for nothing.
 */
export function haveAlone(address: string, kept: string, variable: string): { close(): void } {
  // One that is refused when it is opened names no file.
  const isFile = databaseProblems(variable, address).length === 0 && !isPostgresAddress(address);
  if (!isFile || address === ':memory:') return { close: () => undefined };
  try {
    const lock = lockExclusively(`${address}.lock`);
    return { close: () => lock.close() };
  } catch (cause) {
    if (!hasCode(cause, LOCKED)) {
      throw new ConfigError(`${variable}: ${address} cannot be used: ${messageOf(cause)}`, {
        cause,
      });
    }
    const message = `another process runs on ${kept} in ${address}: stop it, or name another place with ${variable}`;
    throw new Error(message, { cause });
  }
}
