/** What falls due for a pod by time alone, as rows of the schedule. */
import type { Db } from '../../platform/database/tables.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { firstWarningAt } from '../../platform/schedule/warnings.ts';

/** How long a failed creation stays in the list (contract 5.1). */
export const FAILED_LISTED_MS = 180_000;

/** The removal and its warnings, in place of those before; null: none. */
export async function setRemovalDue(
  tx: Db,
  podId: string,
  removalAt: number | null,
): Promise<void> {
  if (removalAt === null) {
    await clearDue(tx, 'pod-removal', podId);
    await clearDue(tx, 'pod-removal-warning', podId);
    return;
  }
  await setDue(tx, 'pod-removal', podId, removalAt);
  await setDue(tx, 'pod-removal-warning', podId, firstWarningAt(removalAt));
}

/** How long a pod that was stopped is kept at most (marketplace reference 2.3.7). */
export const GRACE_MS = 600_000;
/** Longer than that nobody waits for its last backup, whatever its renter does meanwhile. */
const LONGEST_BACKUP_MS = 3_600_000;

/** When a pod that stands still since `stoppedAtMs`, and is kept for `keptMs`, is removed. */
export async function setGraceEnd(
  tx: Db,
  podId: string,
  { stoppedAtMs, keptMs }: { stoppedAtMs: number; keptMs: number },
): Promise<void> {
  await setDue(tx, 'grace-end', podId, stoppedAtMs + keptMs);
  await setDue(tx, 'grace-limit', podId, stoppedAtMs + LONGEST_BACKUP_MS);
}

/** It goes on, or is removed. */
export async function clearGraceEnd(tx: Db, podId: string): Promise<void> {
  await clearDue(tx, 'grace-end', podId);
  await clearDue(tx, 'grace-limit', podId);
}

/** The end of a failed creation of which nothing is left on the node. */
export async function setFailureEnd(tx: Db, podId: string, failedAtMs: number): Promise<void> {
  await setDue(tx, 'pod-failure-end', podId, failedAtMs + FAILED_LISTED_MS);
}
