/** A database in a file has one process at a time that runs on it; those of a PostgreSQL server know of each other. */

import { ConfigError } from '#shared/runtime/config.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';
import { lockExclusively } from '#shared/runtime/sqlite.ts';
import { KINDS, type OwnPlace } from './ownership.ts';
import { databaseProblems, isPostgresAddress, lookAtFile } from './target.ts';

/** Of anything that SQLite refuses: the lock's file is there and open by then. */
const LOCKED = 'ERR_SQLITE_ERROR';

/**
 * Until `close()` or the end of the process, however it ends. Rejects when another process has it, with ConfigError where no
 * file can be made beside it, and as `openDatabase` does for what it would refuse: no lock's file is left beside that. Who
 * only looks into the database asks for nothing.
 */
export async function haveAlone(place: OwnPlace): Promise<{ close(): void }> {
  const { address, variable, kind } = place;
  // One that is refused when it is opened, or is in memory, names no file.
  const isFile = databaseProblems(variable, address).length === 0 && !isPostgresAddress(address);
  if (!isFile) return { close: () => undefined };
  await lookAtFile(place);
  try {
    const lock = lockExclusively(`${address}.lock`);
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
