/** One stream from a pod's node, shared by all readers that follow the pod's log in this process. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import { liveFrames } from '#shared/http/keep-alive.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import {
  createPerOwnerLimit,
  createSemaphore,
  type PerOwnerLimit,
} from '#shared/runtime/semaphore.ts';
import {
  BEGINNING,
  type LogPage,
  type LogPageRequest,
  type LogPosition,
  MAX_TAIL,
  readLogPage,
} from './log-page.ts';
import { createLogRing, type LogRing } from './log-ring.ts';

export type LogHub = {
  ring: LogRing;
  /** Resolves once the ring has its first line. Rejects when `signal` aborts. */
  ready(signal: AbortSignal): Promise<void>;
  /** Resolves when the ring has an entry with this number or a later one. Rejects when `signal` aborts. */
  arrived(number: number, signal: AbortSignal): Promise<void>;
  /** Reads the log's existing lines; at most MAX_PAGES at a time, and further calls wait. */
  page(request: LogPageRequest): Promise<LogPage>;
  /**
   * Reserves the memory of a page with up to LARGE_PAGE_CHARS. Returns the function that releases it; null if too many
   * readers have such a page.
   */
  reserveLargePage(): (() => void) | null;
};

export type LogHubs = ReturnType<typeof createLogHubs>;

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 5_000;
/** Silence after which a stream counts as lost: three keep-alive intervals of the agent. */
const SILENCE_MS = 45_000;
/** Maximum number of pages of one pod that are read at the same time. */
const MAX_PAGES = 4;
/**
 * Maximum characters of a page for a reader that is behind. Each page is a request to the node, which on a busy host
 * takes half a second, so a reader with small pages would stay behind for long.
 */
export const LARGE_PAGE_CHARS = 512 * 1024;
/** Maximum number of large pages of one pod, and of all pods: 16 MiB together. */
const MAX_LARGE_PAGES = { perPod: MAX_PAGES, total: 32 };
/** Entries that arrive within this time are delivered together. */
const GATHER_MS = 5;

/** Creates the hubs. Each hub exists as long as it has followers. */
export function createLogHubs(clock: Clock) {
  const largePages = createPerOwnerLimit(MAX_LARGE_PAGES.perPod, MAX_LARGE_PAGES.total);
  const hubs = new Map<string, { hub: LogHub; followers: number; leave: AbortController }>();
  return {
    /** Adds a follower. The follower must call `leave` at its end. */
    join(podId: string, client: AgentClient): { hub: LogHub; leave(): void } {
      const leave = new AbortController();
      const entry = hubs.get(podId) ?? {
        hub: startLogHub({ clock, client, podId, largePages }, leave.signal),
        followers: 0,
        leave,
      };
      entry.followers += 1;
      hubs.set(podId, entry);
      let joined = true;
      return {
        hub: entry.hub,
        leave() {
          if (joined) entry.followers -= 1;
          joined = false;
          if (entry.followers > 0 || hubs.get(podId) !== entry) return;
          hubs.delete(podId);
          entry.leave.abort();
        },
      };
    },
  };
}

type HubOptions = {
  clock: Clock;
  client: AgentClient;
  podId: string;
  largePages: PerOwnerLimit;
};

/** Runs until `closing` aborts. After a lost connection it resumes at the last received line. */
function startLogHub(options: HubOptions, closing: AbortSignal): LogHub {
  const { clock, client, podId, largePages } = options;
  const ring = createLogRing();
  const pages = createSemaphore(MAX_PAGES);
  const began = Promise.withResolvers<void>();
  const waiting = new Set<() => void>();
  let isGathering = false;
  let at: LogPosition = { tail: MAX_TAIL, since: BEGINNING };

  function push(entry: { id: string | null; text: string }): void {
    ring.push(entry);
    if (!isGathering) void wakeAll();
  }

  /** Wakes the followers at once, but at most every GATHER_MS, so that a burst is delivered in a few batches. */
  async function wakeAll(): Promise<void> {
    isGathering = true;
    for (let delivered = -1; delivered < ring.next() && !closing.aborted; ) {
      delivered = ring.next();
      for (const wake of waiting) wake();
      waiting.clear();
      await clock.sleep(GATHER_MS, closing).catch(() => undefined);
    }
    isGathering = false;
  }

  function accept(frame: LogFrame): void {
    if ('log' in frame) {
      at = { tail: MAX_TAIL, since: frame.id };
      push({ id: frame.id, text: dataFrame(frame) });
    } else if ('meta' in frame && frame.meta !== 'end') {
      // The agent's end frame is dropped: each follower checks itself whether the log has ended.
      push({ id: null, text: dataFrame(frame) });
    }
  }

  /** Starts the ring after the log's present last line, so that the ring contains each later line exactly once. */
  async function begin(): Promise<void> {
    const last = await readLogPage({ client, clock }, podId, {
      from: { tail: 1 },
      signal: closing,
    });
    if (last.lastId !== null) at = { tail: MAX_TAIL, since: last.lastId };
    ring.startAfter(last.lastId);
    began.resolve();
  }

  /** Returns when the agent has ended its stream. */
  async function followOnce(): Promise<void> {
    const leaving = new AbortController();
    const signal = AbortSignal.any([closing, leaving.signal]);
    const upstream = await client.podLogs(podId, { ...at, follow: true }, signal);
    retryMs = FIRST_RETRY_MS;
    const frames = liveFrames<LogFrame | null>({
      clock,
      open(ended) {
        ended.addEventListener('abort', () => leaving.abort(), { once: true });
        return upstream;
      },
      idleFrame: null,
      idleMs: SILENCE_MS,
    });
    const end = () => frames.end();
    closing.addEventListener('abort', end, { once: true });
    try {
      for await (const frame of frames) {
        if (frame === null) throw new Error('the node is silent');
        accept(frame);
      }
    } catch {
      if (!closing.aborted) {
        push({ id: null, text: dataFrame({ meta: 'gap', reason: 'node_lost' }) });
      }
    } finally {
      closing.removeEventListener('abort', end);
      leaving.abort();
    }
  }

  let retryMs = FIRST_RETRY_MS;
  async function run(): Promise<void> {
    let hasBegun = false;
    while (!closing.aborted) {
      try {
        if (!hasBegun) await begin();
        hasBegun = true;
        await followOnce();
      } catch {
        // Either the node does not answer, or the pod is not on the node yet. The loop retries.
      }
      await clock.sleep(retryMs, closing).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    }
  }
  void run();

  return {
    ring,
    ready: (signal) => untilAborted(began.promise, signal),
    async arrived(number, signal) {
      signal.throwIfAborted();
      if (ring.next() > number) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = () => resolve();
      waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
      await promise;
      signal.removeEventListener('abort', wake);
      waiting.delete(wake);
      signal.throwIfAborted();
    },
    page: (request) =>
      pages.run(() => readLogPage({ client, clock }, podId, request), request.signal),
    reserveLargePage: () => (largePages.tryAcquire(podId) ? () => largePages.release(podId) : null),
  };
}

function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(() => {
      signal.removeEventListener('abort', leave);
      resolve();
    }, reject);
  });
}
