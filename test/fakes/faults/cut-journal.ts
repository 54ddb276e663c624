/** Copies of a SQLite database whose write-ahead log was cut, as a failing disk may leave it. */
import { copyFileSync, existsSync, rmSync, statSync, truncateSync } from 'node:fs';
import type { Random } from '#shared/runtime/random.ts';

/**
 * Copies the database at `path`, in which no transaction is open, to `target` and cuts the log of the copy at a
 * random byte. Replaces an earlier copy.
 */
export function copyWithCutJournal(path: string, target: string, random: Random): void {
  for (const end of ['-wal', '-shm', '']) rmSync(`${target}${end}`, { force: true });
  copyFileSync(path, target);
  if (!existsSync(`${path}-wal`)) return;
  copyFileSync(`${path}-wal`, `${target}-wal`);
  truncateSync(`${target}-wal`, random.int(statSync(`${path}-wal`).size + 1));
}
