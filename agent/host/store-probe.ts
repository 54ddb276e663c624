/** Probes the agent's store for the check of its liveness. */

import { messageOf } from '#shared/runtime/errors.ts';
import { type DatabaseSync, isDiskFull } from '#shared/runtime/sqlite.ts';

const PROBE_ROW = 'probed_ms';

/**
 * Writes a row to the store and reads it back. Returns the error, or null on success. A full disk also returns null,
 * because a restart would not free any space.
 */
export function storeProblem(database: DatabaseSync, nowMs: number): string | null {
  const written = String(nowMs);
  try {
    database
      .prepare(
        `INSERT INTO meta (name, value) VALUES (:name, :written)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      )
      .run({ name: PROBE_ROW, written });
    const found = database
      .prepare('SELECT value FROM meta WHERE name = :name')
      .get({ name: PROBE_ROW });
    return found?.['value'] === written ? null : 'a written row could not be read back';
  } catch (error) {
    return isDiskFull(error) ? null : messageOf(error);
  }
}
