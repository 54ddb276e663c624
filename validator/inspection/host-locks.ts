/** Trials that take a host for themselves: one at a time on each, whichever process of this validator is at it. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import { isShared } from '../store/evidence-store.ts';
import { acquireLease, releaseLease } from '../store/lease.store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { CLAIM_MS } from './inspection-queue.ts';

/** Below what callers of a check wait for. */
export const LONGEST_WAIT_MS = 240_000;
/** From one look at what another process holds to the next. */
const LOOK_MS = 1_000;

export type HostLocks = ReturnType<typeof createHostLocks>;

export type HostLocksOptions = {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  /** Of this process alone. */
  holder: string;
};

type Queue = { place: ReturnType<typeof createSemaphore>; users: number };

export function createHostLocks({ store, clock, log, holder }: HostLocksOptions) {
  const queues = new Map<string, Queue>();

  /** Of the other processes. False when it was not to be had in time. */
  async function taken(name: string, waiting: AbortSignal | undefined): Promise<boolean> {
    for (;;) {
      const untilMs = clock.now() + CLAIM_MS;
      if (await acquireLease(store, { name, holder, untilMs }, clock.now())) return true;
      if (waiting === undefined) return false;
      const isOver = await clock.sleep(LOOK_MS, waiting).then(
        () => false,
        () => true,
      );
      if (isOver) return false;
    }
  }

  /** A lease lapses by itself soon after a process was killed; until then it has to be kept. */
  async function leased<T>(
    name: string,
    waiting: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<T | null> {
    if (!isShared(store)) return work();
    if (!(await taken(name, waiting))) return null;
    const holding = startLoop({
      clock,
      intervalMs: CLAIM_MS / 4,
      run: async () => {
        await acquireLease(store, { name, holder, untilMs: clock.now() + CLAIM_MS }, clock.now());
      },
      onError: (error) => log.error({ err: error }, 'a host could not be held'),
    });
    try {
      return await work();
    } finally {
      await holding.stop();
      await releaseLease(store, { name, holder });
    }
  }

  function queueOf(executorId: string): Queue {
    const known = queues.get(executorId) ?? { place: createSemaphore(1), users: 0 };
    queues.set(executorId, known);
    return known;
  }

  return {
    /**
     * What `work` resolves with, once nobody else of this validator is at the host; null when that was not so within
     * `waitMs`, and `work` did not begin.
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
        const turn = () => leased(`host ${executorId}`, waiting, begin);
        return await queue.place.run(turn, waiting);
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
