/** Runs the pod sync over executors that are due, and limits the share of executors that do not answer. */
import { messageOf } from '#shared/runtime/errors.ts';
import { createHeartbeat } from '#shared/runtime/liveness.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { createPodSync, type SyncDeps, type SyncResult } from './pod-sync.ts';
import type { Claim } from './sync-queue.store.ts';
import type { SyncQueue } from './sync-queue.ts';

const POLL_INTERVAL_MS = 300;
/** Pause after a pass that left no work. */
const IDLE_INTERVAL_MS = 10_000;
/** Pause after a temporary refusal: a GPU that is still in use, or a pod that is not ready to reboot. */
const REFUSED_INTERVAL_MS = 2_000;
/** Pause while a backup or restore runs. */
const WORKING_INTERVAL_MS = 2_000;
const FIRST_BACKOFF_MS = 1_000;
const LAST_BACKOFF_MS = 30_000;
const MAX_CONCURRENT = 16;
/** Limit of concurrent passes over executors that did not answer the last time, because their calls take long. */
const MAX_CONCURRENT_UNREACHABLE = 8;

export type SyncJobDeps = SyncDeps & {
  queue: SyncQueue;
  /** Notifies other processes on the same database that executors are due. */
  wakeOthers(): void;
};

/**
 * Creates the pod sync. It is level-triggered: every pass compares rows with the agents' pods, so that a lost
 * notification causes only a delay.
 */
export function createPodSyncJob(deps: SyncJobDeps) {
  const { clock, log, queue } = deps;
  const { syncExecutor, suspendMeters } = createPodSync(deps);
  const running = new Map<string, { claim: Claim; pass: Promise<void> }>();
  const woken = new Set<string>();
  const polls = createHeartbeat(clock);
  let loop: Loop | null = null;

  async function runPass({ executorId, failures }: Claim): Promise<void> {
    const result = await syncExecutor(executorId).catch((error: unknown): SyncResult => {
      log.error({ executor_id: executorId, err: error }, 'pod sync failed');
      return 'unreachable';
    });
    const failed = result === 'unreachable' ? failures + 1 : 0;
    // The next poll claims again an executor whose claim could not be released, because this process no longer lists it
    // as running.
    await queue
      .release(executorId, { pauseMs: pauseAfter(result, failed), failures: failed })
      .catch((error: unknown) => log.error({ err: error }, 'releasing a pod sync claim failed'));
    running.delete(executorId);
  }

  async function startDue(): Promise<void> {
    const failing = [...running.values()].filter(({ claim }) => claim.failures > 0).length;
    const total = MAX_CONCURRENT - running.size;
    if (total <= 0) return;
    const limits = { total, unreachable: Math.max(0, MAX_CONCURRENT_UNREACHABLE - failing) };
    for (const claim of await queue.claim(limits, [...running.keys()])) {
      running.set(claim.executorId, { claim, pass: runPass(claim) });
    }
  }

  /** Stores the wakes since the last poll. Wakes that could not be stored are retried with the next poll. */
  async function storeWakes(): Promise<void> {
    const ids = [...woken];
    woken.clear();
    if (ids.length === 0) return;
    await queue.wake(ids).catch((error: unknown) => {
      for (const id of ids) woken.add(id);
      throw error;
    });
    deps.wakeOthers();
  }

  async function poll(): Promise<void> {
    // Due executors are synced even if the wakes could not be stored.
    await storeWakes().catch((error: unknown) =>
      log.error({ err: error }, 'pod sync: storing wakes failed'),
    );
    await startDue();
  }

  const passes = () => Promise.all([...running.values()].map(({ pass }) => pass));

  return {
    /** Polls once, and waits until every pass has ended. */
    async runOnce(): Promise<void> {
      await poll();
      await passes();
    },

    suspendMeters,

    /** Syncs this executor at once, regardless of its pause. */
    wake(executorId: string): void {
      woken.add(executorId);
      loop?.wake();
    },

    /** Polls at once, because another process has woken an executor. */
    poll(): void {
      loop?.wake();
    },

    /** Milliseconds since the last poll ended. */
    sincePollMs: polls.ageMs,

    /** Removes executors without pods from the queue. */
    sweep: () => queue.sweep(),

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: POLL_INTERVAL_MS,
        run: () => polls.beatAfter(poll),
        onError: (error) => log.error({ err: error }, `pod sync: ${messageOf(error)}`),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
      await passes();
    },
  };
}

function pauseAfter(result: SyncResult, failures: number): number {
  switch (result) {
    case 'busy':
      return 0;
    case 'idle':
      return IDLE_INTERVAL_MS;
    case 'refused':
      return REFUSED_INTERVAL_MS;
    case 'working':
      return WORKING_INTERVAL_MS;
    case 'unreachable':
      return Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LAST_BACKOFF_MS);
  }
}
