/** Whether the agent's store still takes and gives. */
import { messageOf } from '#shared/runtime/errors.ts';
import { type DatabaseSync, isDiskFull } from '#shared/runtime/sqlite.ts';

const NAME = 'probed_ms';

/**
 * Writes a row and reads it back; why that did not work, in words. Null for a full disk too: the agent lives with that,
 * and a restart frees nothing.
 */
export function problemOfStore(database: DatabaseSync, nowMs: number): string | null {
  const written = String(nowMs);
  try {
    database
      .prepare(
        `INSERT INTO meta (name, value) VALUES (:name, :written)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      )
      .run({ name: NAME, written });
    const found = database.prepare('SELECT value FROM meta WHERE name = :name').get({ name: NAME });
    return found?.['value'] === written ? null : 'it does not keep what is written';
  } catch (error) {
    return isDiskFull(error) ? null : messageOf(error);
  }
}
