/**
 * Out-of-memory kills that the engine reports after the exit of the container. Under load the two reports change their
 * order, and the container's state then lacks the flag at first or for ever. The event follows in any case.
 */
import type { ContainerState, EngineEvent } from '../containers/engine/engine.ts';
import { messageOfRecorded } from './backoff.ts';
import type { PodRow } from './pod.store.ts';
import type { PodPatch, PodRecords } from './pod-records.ts';
import { lastExitOf } from './pod-row.ts';

/** Time between exit and event within which the event explains the exit. */
export const LATE_OOM_MS = 5_000;
/** Containers whose last event is remembered; the oldest event is dropped first. */
const MAX_REMEMBERED = 1_000;

export type OomEvents = ReturnType<typeof createOomEvents>;

export function createOomEvents(records: Pick<PodRecords, 'get' | 'change'>) {
  const lastMs = new Map<string, number>();

  return {
    /** Remembers the event for an exit that is not recorded yet, and corrects the exit that is recorded. */
    note({ podId, containerId, timeMs }: EngineEvent): void {
      lastMs.delete(containerId);
      const [oldest] = lastMs.keys();
      if (oldest !== undefined && lastMs.size >= MAX_REMEMBERED) lastMs.delete(oldest);
      lastMs.set(containerId, timeMs);
      // The row may be missing or corrupt.
      if (records.get(podId) === null) return;
      records.change(podId, (row) =>
        row.container_id === containerId ? afterLateOom(row, timeMs) : null,
      );
    },
    /**
     * Sets the flag of a container that failed out of memory and whose state lacks it. As with the engine's own flag, the
     * exit code does not matter: the kernel may have killed a child of the process that then exited.
     */
    complete(container: ContainerState): ContainerState {
      const { id, exitCode, finishedMs, oomKilled } = container;
      if (oomKilled || exitCode === 0 || !explains(lastMs.get(id), finishedMs)) return container;
      return { ...container, oomKilled: true };
    },
  };
}

function explains(eventMs: number | undefined, finishedMs: number): boolean {
  return eventMs !== undefined && Math.abs(eventMs - finishedMs) <= LATE_OOM_MS;
}

/** Null if the event does not explain the recorded exit. */
function afterLateOom(row: PodRow, eventMs: number): PodPatch | null {
  const exit = lastExitOf(row);
  if (exit?.reason !== 'ExitedNonZero' || !explains(eventMs, exit.finished_ms)) return null;
  const known = { ...exit, oom_killed: true, reason: 'OOMKilled' as const };
  const patch = { last_exit_json: JSON.stringify(known) };
  // The row's reason describes the exit until the container runs again.
  if (row.reason !== 'ExitedNonZero' && row.reason !== 'CrashLoopBackOff') return patch;
  const reason = row.reason === 'ExitedNonZero' ? known.reason : row.reason;
  return { ...patch, reason, message: messageOfRecorded(known, row.attempts) };
}
