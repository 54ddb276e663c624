/** Runs the pod sync over executors that are due, and limits the share of executors that do not answer. */
import { messageOf } from '#shared/runtime/errors.ts';
import { createHeartbeat } from '#shared/runtime/liveness.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { createPodSync, type PassResult, type SyncDeps, type SyncResult } from './pod-sync.ts';
import { createSeenTimes } from './seen-times.ts';
import type { Claim, Release } from './sync-queue.store.ts';
import type { ClaimLimits, SyncQueue } from './sync-queue.ts';

/**
 * Longest time for which the end of a pass waits for others, so that one transaction releases several claims. A wake
 * does not wait.
 */
const GATHER_MS = 20;
/** Interval between two claims while no pass ends and nothing is woken. */
const POLL_INTERVAL_MS = 300;
/** Pause after a pass that left no work. */
export const DEFAULT_SYNC_INTERVAL_MS = 10_000;
/** Maximum number of concurrent passes of one process. */
export const DEFAULT_SYNC_CONCURRENCY = 64;
/** Pause while a pod is in transition; up to POLL_INTERVAL_MS longer if no other pass ends. */
const BUSY_INTERVAL_MS = 150;
/** Pause after a temporary refusal: a GPU that is still in use, or a pod that is not ready to reboot. */
const REFUSED_INTERVAL_MS = 2_000;
/** Pause while a backup or restore runs. */
const WORKING_INTERVAL_MS = 2_000;
const FIRST_BACKOFF_MS = 1_000;
const LAST_BACKOFF_MS = 30_000;
/**
 * Share of concurrent passes for executors that did not answer the last time, because their calls take long.
 */
const UNREACHABLE_SHARE = 0.5;
/** Share of concurrent passes that only woken executors use, so that a rental does not wait for other passes to end. */
const WOKEN_SHARE = 0.125;
const WATCH_INTERVAL_MS = 30_000;
/** Delay of the oldest due executor above which a warning is logged. */
const LATE_MS = 30_000;
/** Time after which a stop abandons the passes that still run. */
const STOP_LIMIT_MS = 5_000;

export type SyncJobDeps = Omit<SyncDeps, 'seen'> & {
  queue: SyncQueue;
  /** Pause between two passes over an executor without work. */
  syncIntervalMs: number;
  /** Maximum number of concurrent passes. */
  syncConcurrency: number;
  /**
   * Longest pause between two claims while nothing is due or woken, for a process that is alone on its database: no
   * other process makes executors due. The pause after a pass without work is then up to `pollMs` longer. Default: it
   * claims every POLL_INTERVAL_MS.
   */
  pollMs?: number;
  /** Pause between two syncs of a node with a pod in transition. Default: BUSY_INTERVAL_MS. */
  busyIntervalMs?: number;
  /** Longest pause between two syncs of a node that does not answer. Default: LAST_BACKOFF_MS. */
  lastBackoffMs?: number;
  /** Notifies other processes on the same database that executors are due. */
  wakeOthers(): void;
};

/**
 * Creates the pod sync. It is level-triggered: every pass compares rows with the agents' pods, so that a lost
 * notification causes only a delay.
 */
export function createPodSyncJob(deps: SyncJobDeps) {
  const { clock, log, queue, syncIntervalMs, syncConcurrency } = deps;
  const { pollMs = 0, busyIntervalMs: busyMs = BUSY_INTERVAL_MS } = deps;
  const { lastBackoffMs = LAST_BACKOFF_MS } = deps;
  const seen = createSeenTimes();
  const { syncExecutor, suspendMeters } = createPodSync({ ...deps, seen });
  const maxUnreachable = Math.max(1, Math.floor(syncConcurrency * UNREACHABLE_SHARE));
  const running = new Map<string, { claim: Claim; pass: Promise<void> }>();
  /** Passes that have ended and whose claims are not released yet. */
  let ended: Release[] = [];
  const woken = new Set<string>();
  const polls = createHeartbeat(clock);
  let syncing: Loop | null = null;
  let watching: Loop | null = null;
  let isAbandoned = false;
  let isGathering = false;
  /** Time of the next poll while nothing is woken, in wall clock time. Used only with `pollMs`. */
  let nextPollMs = 0;
  const startedMs = clock.now();

  const wakeLoop = () => syncing?.wake();

  async function runPass(claim: Claim): Promise<void> {
    const { executorId } = claim;
    const { result, isEmpty } = await syncExecutor(executorId).catch((error: unknown) => {
      if (!isAbandoned) log.error({ executor_id: executorId, err: error }, 'pod sync failed');
      return FAILED;
    });
    const failures = result === 'unreachable' ? claim.failures + 1 : 0;
    const waitMs = pauseAfter(result, failures, {
      idleMs: idlePauseMs(),
      busyMs,
      lastBackoffMs,
    });
    ended.push({ executorId, failures, pauseMs: waitMs, isEmpty });
    pollSoon();
  }

  /** With `pollMs`, idle executors are due at multiples of it, so that one poll claims many of them. */
  function idlePauseMs(): number {
    if (pollMs === 0) return syncIntervalMs;
    const dueMs = Math.ceil((clock.now() + syncIntervalMs) / pollMs) * pollMs;
    return dueMs - clock.now();
  }

  function pollSoon(): void {
    if (isGathering) return;
    isGathering = true;
    void clock.sleep(GATHER_MS).then(() => {
      isGathering = false;
      wakeLoop();
    });
  }

  /** Limits of further claims. Without `maySync` nothing is claimed. */
  function freeLimits(maySync: boolean): ClaimLimits {
    const done = new Set(ended.map(({ executorId }) => executorId));
    const passes = [...running.values()].filter(({ claim }) => !done.has(claim.executorId));
    const failing = passes.filter(({ claim }) => claim.failures > 0).length;
    return {
      total: maySync ? syncConcurrency - passes.length : 0,
      unreachable: Math.max(0, maxUnreachable - failing),
      reserved: Math.floor(syncConcurrency * WOKEN_SHARE),
    };
  }

  /**
   * Stores wakes and the ends of passes, and starts passes over executors that are due. Wakes and ends that could not be
   * stored are stored by a later call. Executors that are due within `aheadMs` count as due.
   */
  async function poll({ maySync = true, aheadMs = 0 } = {}): Promise<void> {
    const limits = freeLimits(maySync);
    const releases = ended;
    const wakes = [...woken];
    ended = [];
    woken.clear();
    const exchange = { releases, wakes, limits, running: [...running.keys()], aheadMs };
    const left = await queue
      .exchange({ ...exchange, store: seen.store })
      .catch((error: unknown) => {
        ended = [...releases, ...ended];
        for (const id of wakes) woken.add(id);
        throw error;
      });
    ended = [...left.releases, ...ended];
    for (const id of left.wakes) woken.add(id);
    const kept = new Set(left.releases);
    for (const release of releases) if (!kept.has(release)) running.delete(release.executorId);
    for (const claim of left.claims) running.set(claim.executorId, { claim, pass: runPass(claim) });
    if (wakes.length > 0) deps.wakeOthers();
    if (pollMs > 0) nextPollMs = (await queue.nextDueMs()) ?? clock.now() + pollMs;
  }

  /** Nodes that become due within the pause of a busy node are claimed together. */
  const pauseMs = () =>
    Math.min(Math.max(nextPollMs - clock.now(), POLL_INTERVAL_MS, busyMs), pollMs);

  const passes = () => Promise.all([...running.values()].map(({ pass }) => pass));

  async function watch(): Promise<void> {
    const longestMs = Math.max(syncIntervalMs + pollMs, lastBackoffMs);
    await queue.pullIn(longestMs);
    // After a downtime all nodes are late at first, which more concurrency does not change.
    const delayMs = Math.min(await queue.delayMs(), clock.now() - startedMs);
    if (delayMs < LATE_MS) return;
    log.warn(
      { delay_seconds: Math.round(delayMs / 1_000) },
      'nodes wait too long for their sync: raise CENTRAL_SYNC_CONCURRENCY or CENTRAL_SYNC_INTERVAL_SECONDS, or start another process',
    );
  }

  return {
    /**
     * Claims executors once, and waits until every pass has ended. Does not observe BUSY_INTERVAL_MS, so that tests can
     * call it again at once.
     */
    async runOnce(): Promise<void> {
      await poll({ aheadMs: busyMs });
      await passes();
      await poll({ maySync: false });
    },

    suspendMeters,

    /** Syncs this executor at once, regardless of its pause. */
    wake(executorId: string): void {
      woken.add(executorId);
      wakeLoop();
    },

    /** Polls at once, because another process has woken an executor. */
    poll: wakeLoop,

    /** Milliseconds since the last poll ended. */
    sincePollMs: polls.ageMs,

    start(): void {
      syncing ??= startLoop({
        clock,
        intervalMs: pollMs > 0 ? pauseMs : POLL_INTERVAL_MS,
        run: () => polls.beatAfter(() => poll()),
        onError: (error) => log.error({ err: error }, `pod sync: ${messageOf(error)}`),
      });
      watching ??= startLoop({
        clock,
        intervalMs: Math.max(WATCH_INTERVAL_MS, pollMs),
        run: watch,
        onError: (error) => log.error({ err: error }, 'watching the sync queue failed'),
      });
    },

    /**
     * Stops claims and waits for the passes that run, at most STOP_LIMIT_MS. Another process, or the next start, syncs
     * the executors of abandoned passes again.
     */
    async stop(): Promise<void> {
      await Promise.all([syncing?.stop(), watching?.stop()]);
      syncing = null;
      watching = null;
      const waited = new AbortController();
      const limit = clock.sleep(STOP_LIMIT_MS, waited.signal).catch(() => undefined);
      isAbandoned = await Promise.race([passes().then(() => false), limit.then(() => true)]);
      waited.abort();
      await poll({ maySync: false }).catch((error: unknown) =>
        log.warn({ err: error }, 'releasing the claims of the pod sync failed'),
      );
    },
  };
}

const FAILED: PassResult = { result: 'unreachable', isEmpty: false };

function pauseAfter(
  result: SyncResult,
  failures: number,
  { idleMs, busyMs, lastBackoffMs }: { idleMs: number; busyMs: number; lastBackoffMs: number },
): number {
  switch (result) {
    case 'busy':
      return busyMs;
    case 'idle':
      return idleMs;
    case 'refused':
      return Math.max(REFUSED_INTERVAL_MS, busyMs);
    case 'working':
      return Math.max(WORKING_INTERVAL_MS, busyMs);
    case 'unreachable':
      return Math.max(Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), lastBackoffMs), busyMs);
  }
}
