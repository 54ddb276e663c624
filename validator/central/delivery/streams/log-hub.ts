/** One stream from a pod's node for all who follow the pod's log here. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import { framesOrIdle, IDLE } from './idle-frames.ts';
import { BEGINNING, type LogPage, type LogPosition, MAX_TAIL, readLogPage } from './log-page.ts';
import { createLogRing, type LogRing } from './log-ring.ts';

export type LogHub = {
  ring: LogRing;
  /** Resolves once it is known where the ring begins. Rejects when `signal` aborts. */
  ready(signal: AbortSignal): Promise<void>;
  /** Resolves when an entry of this number or a later one is there. Rejects when `signal` aborts. */
  arrived(number: number, signal: AbortSignal): Promise<void>;
  /** What is in the log already. Few at a time; the others wait. */
  page(from: LogPosition, signal: AbortSignal): Promise<LogPage>;
};

export type LogHubs = ReturnType<typeof createLogHubs>;

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 5_000;
/** Three keep-alives of the agent: a stream that misses them is dead. */
const SILENCE_MS = 45_000;
/** Pages of one pod that are read at a time. */
const MAX_PAGES = 4;
/** How long what comes right behind something else may wait for more. */
const GATHER_MS = 5;

/** A hub lives as long as it has followers. */
export function createLogHubs(clock: Clock) {
  const hubs = new Map<string, { hub: LogHub; followers: number; leave: AbortController }>();
  return {
    /** To be left when the follower goes. */
    join(podId: string, client: AgentClient): { hub: LogHub; leave(): void } {
      const leave = new AbortController();
      const entry = hubs.get(podId) ?? {
        hub: startLogHub({ clock, client, podId }, leave.signal),
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

type HubOptions = { clock: Clock; client: AgentClient; podId: string };

/** Runs until `over` aborts. A node that is lost is asked again, after the last line that came. */
function startLogHub({ clock, client, podId }: HubOptions, over: AbortSignal): LogHub {
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

  /** At once, then not again for a moment: a burst is handed to everybody in a few pieces. */
  async function wakeAll(): Promise<void> {
    isGathering = true;
    for (let told = -1; told < ring.next() && !over.aborted; ) {
      told = ring.next();
      for (const wake of waiting) wake();
      waiting.clear();
      await clock.sleep(GATHER_MS, over).catch(() => undefined);
    }
    isGathering = false;
  }

  function take(frame: LogFrame): void {
    if ('log' in frame) {
      at = { tail: MAX_TAIL, since: frame.id };
      push({ id: frame.id, text: dataFrame(frame) });
    } else if ('meta' in frame && frame.meta !== 'end') {
      // The agent's end is not the log's: what it means, each follower finds out.
      push({ id: null, text: dataFrame(frame) });
    }
  }

  /** The ring begins after what is the last line now, so that each later line is in it, and once. */
  async function begin(): Promise<void> {
    const last = await readLogPage({ client, clock }, podId, { tail: 1 }, over);
    if (last.lastId !== null) at = { tail: MAX_TAIL, since: last.lastId };
    ring.startAfter(last.lastId);
    began.resolve();
  }

  /** Returns when the agent has ended its stream. */
  async function followOnce(): Promise<void> {
    const leaving = new AbortController();
    const signal = AbortSignal.any([over, leaving.signal]);
    const upstream = await client.podLogs(podId, { ...at, follow: true }, signal);
    retryMs = FIRST_RETRY_MS;
    try {
      const frames = framesOrIdle(upstream, { clock, idleMs: SILENCE_MS, signal: over });
      for await (const frame of frames) {
        if (frame === IDLE) throw new Error('the node is silent');
        take(frame);
      }
    } catch {
      if (!over.aborted) push({ id: null, text: dataFrame({ meta: 'gap', reason: 'node_lost' }) });
    } finally {
      leaving.abort();
    }
  }

  let retryMs = FIRST_RETRY_MS;
  async function run(): Promise<void> {
    let hasBegun = false;
    while (!over.aborted) {
      try {
        if (!hasBegun) await begin();
        hasBegun = true;
        await followOnce();
      } catch {
        // The node does not answer, or does not know the pod yet: asked again below.
      }
      await clock.sleep(retryMs, over).catch(() => undefined);
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
    page: (from, signal) =>
      pages.run(() => readLogPage({ client, clock }, podId, from, signal), signal),
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
