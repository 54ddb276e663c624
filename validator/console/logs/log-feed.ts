/**
 * A view of one or several pods' logs: one buffer, a stream per pod, and whether the view follows the newest lines. A view
 * that does not follow keeps its entries; when it is full, its streams end and continue later after their last line.
 */
import { type ApiFailure, failureOf } from '../api/failure.ts';
import { createLogBuffer, type LogCut, type LogLimits } from './log-buffer.ts';
import { type LogEntry, mark } from './log-lines.ts';
import type { LogStart } from './log-start.ts';
import { createLogStream, type LogStreamPorts, type LogStreamState } from './log-stream.ts';

export type LogFeedState = {
  /** True if the view shows the newest lines. */
  isFollowing: boolean;
  /** State of each pod's stream. */
  streams: readonly LogStreamState[];
  /** Number of the first entry that arrived while the view did not follow. */
  newFrom: number;
  history: 'idle' | 'loading' | ApiFailure;
};

export type LogFeedPorts = Pick<LogStreamPorts, 'soon' | 'after' | 'sleep'> & {
  /** Opens the socket of a pod's log; rejects with an `ApiFailure`, or if the signal aborts before. */
  open(podId: string, start: LogStart, signal: AbortSignal): Promise<WebSocket>;
  /** Reads entries that have left the view; rejects with an `ApiFailure`. */
  readCut(podId: string, cut: LogCut, signal: AbortSignal): Promise<LogEntry[]>;
};

export type LogFeed = ReturnType<typeof createLogFeed>;

/** Lines of a view after lines were skipped. */
const NEWEST: LogStart = { tail: 1_000 };

export function createLogFeed(
  ports: LogFeedPorts,
  podIds: readonly string[],
  start: LogStart,
  limits?: LogLimits,
) {
  const buffer = createLogBuffer(limits);
  const listeners = new Set<() => void>();
  let state: LogFeedState = {
    isFollowing: true,
    streams: podIds.map(() => ({ name: 'connecting' })),
    newFrom: 0,
    history: 'idle',
  };
  /** Signal of the present `run`; aborted without one. */
  let running = AbortSignal.abort();
  let stopStreams = new AbortController();

  function change(next: Partial<LogFeedState>): void {
    state = { ...state, ...next };
    for (const listener of listeners) listener();
  }

  function changeStream(source: number, next: LogStreamState): void {
    change({ streams: state.streams.map((before, at) => (at === source ? next : before)) });
  }

  function deliver(entries: readonly LogEntry[]): boolean {
    if (podIds.length > 1) buffer.insert(entries);
    else buffer.append(entries);
    if (state.isFollowing) buffer.trim();
    return state.isFollowing || !buffer.isFull();
  }

  const streams = podIds.map((podId, source) =>
    createLogStream(
      {
        ...ports,
        open: (position, signal) => ports.open(podId, position, signal),
        deliver,
        onState: (next) => changeStream(source, next),
      },
      source,
      start,
    ),
  );

  async function runStreams(which: (source: number) => boolean): Promise<void> {
    const signal = AbortSignal.any([running, stopStreams.signal]);
    await Promise.all(
      streams.filter((_, source) => which(source)).map((stream) => stream.run(signal)),
    );
  }

  const isHeld = (source: number) => state.streams[source]?.name === 'held';

  /** Ends the connections; the streams are then held. */
  function hold(): void {
    stopStreams.abort();
    stopStreams = new AbortController();
    change({
      streams: state.streams.map((stream) => (isOpen(stream) ? { name: 'held' } : stream)),
    });
  }

  function follow(): void {
    change({ isFollowing: true });
    buffer.trim();
    void runStreams(isHeld);
  }

  return {
    buffer,
    get: () => state,
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Follows the logs until the signal aborts. A later call continues after the last lines. */
    async run(signal: AbortSignal): Promise<void> {
      running = signal;
      await runStreams((source) => state.streams[source]?.name !== 'ended' && !isHeld(source));
    },
    /** Shows the newest lines. Held streams continue after their last line. */
    follow,
    /** Keeps the present lines in the view. */
    pause(): void {
      if (state.isFollowing) change({ isFollowing: false, newFrom: buffer.end() });
    },
    /** Removes all lines from the view. */
    clear(): void {
      buffer.clear();
      change({ newFrom: buffer.end() });
      follow();
    },
    /** Continues with the newest lines, and marks that others were skipped. */
    skipToNewest(): void {
      hold();
      buffer.clear();
      for (const [source, stream] of streams.entries()) {
        buffer.append([mark('Lines were skipped here, on your request.', true, source)]);
        stream.moveTo(NEWEST);
      }
      follow();
    },
    /** Reads the lines that left the view last. For one pod. */
    async loadEarlier(): Promise<void> {
      const cut = buffer.lastCut();
      const [podId = ''] = podIds;
      const [stream] = streams;
      if (cut === null || stream === undefined || state.history === 'loading') return;
      // The newest lines may have to leave for the earlier ones, so none may arrive.
      hold();
      change({ isFollowing: false, newFrom: buffer.end(), history: 'loading' });
      try {
        const entries = await ports.readCut(podId, cut, running);
        const after = buffer.restore(entries);
        if (after !== null) stream.moveTo({ after });
        change({ history: 'idle', newFrom: buffer.end() });
        if (after === null && !buffer.isFull()) void runStreams(isHeld);
      } catch (error) {
        change({ history: failureOf(error) });
        void runStreams(isHeld);
      }
    },
  };
}

function isOpen({ name }: LogStreamState): boolean {
  return name === 'connecting' || name === 'following' || name === 'waiting';
}
