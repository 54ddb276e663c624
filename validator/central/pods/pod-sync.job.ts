/** Decides which executors are asked when, and keeps slow ones from holding up the rest. */
import { messageOf } from '#shared/errors.ts';
import { type Loop, startLoop } from '#shared/loop.ts';
import { listBusyExecutorIds } from './pod.store.ts';
import { createPodSync, type SyncDeps, type SyncResult } from './pod-sync.ts';
import { endOldFailures, removeDuePods } from './pod-upkeep.ts';

/** Pause between looks at what is due. */
const TICK_MS = 300;
/** Pause between passes over an executor on which nothing is under way. */
const CALM_INTERVAL_MS = 10_000;
/** Pause after a refusal that may pass: a GPU still in use, a pod not yet fit to reboot. */
const REFUSED_INTERVAL_MS = 2_000;
const FIRST_BACKOFF_MS = 1_000;
const LAST_BACKOFF_MS = 30_000;
const MAX_CONCURRENT = 16;
/** Executors that did not answer last time get at most this many of them: they take long. */
const MAX_CONCURRENT_UNREACHABLE = 8;
/** A launch whose answer was lost may arrive after its pod has ended: agents are watched this long. */
const AFTERMATH_MS = 600_000;

type Pace = { dueAtMs: number; failures: number; woken: boolean };

/** Level-triggered: every pass compares rows with what agents say, so nothing depends on a message. */
export function createPodSyncJob(deps: SyncDeps) {
  const { db, clock, log } = deps;
  const syncExecutor = createPodSync(deps);
  const paces = new Map<string, Pace>();
  const running = new Map<string, Promise<void>>();
  let loop: Loop | null = null;

  function paceOf(executorId: string): Pace {
    const pace = paces.get(executorId) ?? { dueAtMs: 0, failures: 0, woken: false };
    paces.set(executorId, pace);
    return pace;
  }

  function start(executorId: string): void {
    const pace = paceOf(executorId);
    pace.woken = false;
    const pass = syncExecutor(executorId)
      .catch((error: unknown): SyncResult => {
        log.error({ executor_id: executorId, err: error }, 'pod sync failed');
        return 'unreachable';
      })
      .then((result) => {
        running.delete(executorId);
        pace.failures = result === 'unreachable' ? pace.failures + 1 : 0;
        const pauseMs = pace.woken ? 0 : pauseAfter(result, pace.failures);
        pace.dueAtMs = clock.monotonicMs() + pauseMs;
      });
    running.set(executorId, pass);
  }

  /** Those that answer go first. */
  function startDue(busyIds: readonly string[]): void {
    const nowMs = clock.monotonicMs();
    const due = busyIds
      .filter((id) => !running.has(id) && paceOf(id).dueAtMs <= nowMs)
      .toSorted((a, b) => paceOf(a).failures - paceOf(b).failures);
    for (const id of due) {
      if (running.size >= MAX_CONCURRENT) return;
      const slow = [...running.keys()].filter((other) => paceOf(other).failures > 0).length;
      if (paceOf(id).failures > 0 && slow >= MAX_CONCURRENT_UNREACHABLE) return;
      start(id);
    }
  }

  async function tick(): Promise<void> {
    const nowMs = clock.now();
    for (const id of await removeDuePods(deps, nowMs)) paceOf(id).dueAtMs = 0;
    await endOldFailures(deps, nowMs);
    const busyIds = await listBusyExecutorIds(db, nowMs - AFTERMATH_MS);
    const busy = new Set(busyIds);
    for (const id of paces.keys()) if (!busy.has(id)) paces.delete(id);
    startDue(busyIds);
  }

  return {
    /** One look at everything due, waiting until it is done. */
    async runOnce(): Promise<void> {
      await tick();
      await Promise.all(running.values());
    },

    /** Asks this executor at once, whatever its pace was. */
    wake(executorId: string): void {
      const pace = paceOf(executorId);
      pace.dueAtMs = 0;
      pace.woken = true;
      loop?.wake();
    },

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: TICK_MS,
        run: tick,
        onError: (error) => log.error({ err: error }, `pod sync: ${messageOf(error)}`),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
      await Promise.all(running.values());
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
    case 'unreachable':
      return Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LAST_BACKOFF_MS);
  }
}
