/** When scheduled backups run. Pure. */
import { createHash } from 'node:crypto';

const HOUR_MS = 3_600_000;

/**
 * The next run after `nowMs`. Runs of a pod lie on a grid that its id moves, the same for ever: pods do not all run
 * at once, and however many runs a downtime has cost, one is made up for.
 */
export function nextRunAt(podId: string, frequencyHours: number, nowMs: number): number {
  const everyMs = frequencyHours * HOUR_MS;
  const digest = createHash('sha256').update(podId).digest();
  const offsetMs = digest.readUIntBE(0, 6) % everyMs;
  return nowMs + everyMs - ((nowMs - offsetMs) % everyMs);
}
