/** Locks hosts so that one trial runs on each at a time, across all processes of this validator. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import { isShared } from '../store/evidence-store.ts';
import { acquireLease, releaseLease } from '../store/lease.store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { CLAIM_MS } from './inspection-queue.ts';

/** Maximum wait for a host's lock; shorter than the timeout of a client that requests a check. */
export const LONGEST_WAIT_MS = 240_000;
/** Interval for retrying a lease that another process holds. */
const RETRY_MS = 1_000;

export type HostLocks = ReturnType<typeof createHostLocks>;

export type HostLocksOptions = {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  /** Unique id of this process. */
  holder: string;
};

type Queue = { semaphore: ReturnType<typeof createSemaphore>; users: number };

export function createHostLocks({ store, clock, log, holder }: HostLocksOptions) {
  const queues = new Map<string, Queue>();

  /** Acquires the lease that excludes other processes. Returns false if the lease was not free in time. */
  async function acquired(name: string, waiting: AbortSignal | undefined): Promise<boolean> {
    for (;;) {
      const untilMs = clock.now() + CLAIM_MS;
      if (await acquireLease(store, { name, holder, untilMs }, clock.now())) return true;
      if (waiting === undefined) return false;
      const isAborted = await clock.sleep(RETRY_MS, waiting).then(
        () => false,
        () => true,
      );
      if (isAborted) return false;
    }
  }

  /** Runs `work` under a lease, which is extended while `work` runs and expires soon after the process was killed. */
  async function leased<T>(
    name: string,
    waiting: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<T | null> {
    if (!isShared(store)) return work();
    if (!(await acquired(name, waiting))) return null;
    const extending = startLoop({
      clock,
      intervalMs: CLAIM_MS / 4,
      run: async () => {
        await acquireLease(store, { name, holder, untilMs: clock.now() + CLAIM_MS }, clock.now());
      },
      onError: (error) => log.error({ err: error }, 'host lease failed to extend'),
    });
    try {
      return await work();
    } finally {
      await extending.stop();
      await releaseLease(store, { name, holder });
    }
  }

  function queueOf(executorId: string): Queue {
    const known = queues.get(executorId) ?? { semaphore: createSemaphore(1), users: 0 };
    queues.set(executorId, known);
    return known;
  }

  return {
    /**
     * Runs `work` once no other trial uses the host. Resolves with null, without starting `work`, if the host is not
     * free within `waitMs`.
     */
    async run<T>(executorId: string, waitMs: number, work: () => Promise<T>): Promise<T | null> {
      const queue = queueOf(executorId);
      if (queue.users > 0 && waitMs === 0) return null;
      queue.users += 1;
      const waiting = waitMs === 0 ? undefined : clock.deadline(waitMs);
      let hasBegun = false;
      const begin = () => {
        hasBegun = true;
        return work();
      };
      try {
        const locked = () => leased(`host ${executorId}`, waiting, begin);
        return await queue.semaphore.run(locked, waiting);
      } catch (error) {
        if (hasBegun || waiting?.aborted !== true) throw error;
        return null;
      } finally {
        queue.users -= 1;
        if (queue.users === 0) queues.delete(executorId);
      }
    },
  };
}
