/** Takes executors that are due, and keeps slow ones from holding up the rest. */
import { messageOf } from '#shared/runtime/errors.ts';
import { createHeartbeat } from '#shared/runtime/liveness.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { createPodSync, type SyncDeps, type SyncResult } from './pod-sync.ts';
import type { SyncTurns, Turn } from './sync-turns.ts';

/** Pause between looks at what is due. */
const TICK_MS = 300;
/** Pause between passes over an executor on which nothing is under way. */
const CALM_INTERVAL_MS = 10_000;
/** Pause after a refusal that may pass: a GPU still in use, a pod not yet fit to reboot. */
const REFUSED_INTERVAL_MS = 2_000;
/** Pause between looks at the progress of a backup or restore. */
const WORKING_INTERVAL_MS = 2_000;
const FIRST_BACKOFF_MS = 1_000;
const LAST_BACKOFF_MS = 30_000;
const MAX_CONCURRENT = 16;
/** Executors that did not answer last time get at most this many of them: they take long. */
const MAX_CONCURRENT_UNREACHABLE = 8;

export type SyncJobDeps = SyncDeps & {
  turns: SyncTurns;
  /** Has the loops of other processes on the same database look at once. */
  wakeOthers(): void;
};

/** Level-triggered: every pass compares rows with what agents say, so nothing depends on a message. */
export function createPodSyncJob(deps: SyncJobDeps) {
  const { clock, log, turns } = deps;
  const syncExecutor = createPodSync(deps);
  const running = new Map<string, { turn: Turn; pass: Promise<void> }>();
  const woken = new Set<string>();
  const looks = createHeartbeat(clock);
  let loop: Loop | null = null;

  async function pass({ executorId, failures }: Turn): Promise<void> {
    const result = await syncExecutor(executorId).catch((error: unknown): SyncResult => {
      log.error({ executor_id: executorId, err: error }, 'pod sync failed');
      return 'unreachable';
    });
    const failed = result === 'unreachable' ? failures + 1 : 0;
    // Was it not ended, the next look takes it again, as this process has it no more among its running ones.
    await turns
      .end(executorId, { pauseMs: pauseAfter(result, failed), failures: failed })
      .catch((error: unknown) => log.error({ err: error }, 'a turn of the pod sync was not ended'));
    running.delete(executorId);
  }

  async function startDue(): Promise<void> {
    const slow = [...running.values()].filter(({ turn }) => turn.failures > 0).length;
    const any = MAX_CONCURRENT - running.size;
    if (any <= 0) return;
    const room = { any, slow: Math.max(0, MAX_CONCURRENT_UNREACHABLE - slow) };
    for (const turn of await turns.take(room, [...running.keys()])) {
      running.set(turn.executorId, { turn, pass: pass(turn) });
    }
  }

  /** Wakes since the last look; kept for the next one should the database not take them. */
  async function passOnWakes(): Promise<void> {
    const ids = [...woken];
    woken.clear();
    if (ids.length === 0) return;
    await turns.wake(ids).catch((error: unknown) => {
      for (const id of ids) woken.add(id);
      throw error;
    });
    deps.wakeOthers();
  }

  async function tick(): Promise<void> {
    // Wakes that were not stored keep the executors that are due from nothing.
    await passOnWakes().catch((error: unknown) =>
      log.error({ err: error }, 'pod sync: passing on wakes failed'),
    );
    await startDue();
  }

  const passes = () => Promise.all([...running.values()].map((entry) => entry.pass));

  return {
    /** One look at everything due, waiting until it is done. */
    async runOnce(): Promise<void> {
      await tick();
      await passes();
    },

    /** Asks this executor at once, whatever its pace was. */
    wake(executorId: string): void {
      woken.add(executorId);
      loop?.wake();
    },

    /** Looks at once: another process has woken something. */
    look(): void {
      loop?.wake();
    },

    /** Milliseconds since the last look of the periodic work ended. */
    sinceLookMs: looks.ageMs,

    /** Forgets executors without pods. */
    sweep: () => turns.sweep(),

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: TICK_MS,
        run: () => looks.beatAfter(tick),
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
    case 'calm':
      return CALM_INTERVAL_MS;
    case 'refused':
      return REFUSED_INTERVAL_MS;
    case 'working':
      return WORKING_INTERVAL_MS;
    case 'unreachable':
      return Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LAST_BACKOFF_MS);
  }
}
