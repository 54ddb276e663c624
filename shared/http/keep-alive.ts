/** Keep-alive of streams: idle frames for event streams, pings for WebSockets. */
import type { WebSocket } from 'ws';
import type { Clock } from '../runtime/clock.ts';

/** Longest time without a frame or ping on a stream. */
export const KEEP_ALIVE_INTERVAL_MS = 15_000;
/** Number of pings without a pong, and without progress in sending, after which a peer counts as dead. */
const MAX_MISSED_PONGS = 3;

export type LiveFrames<Frame> = AsyncIterableIterator<Frame> & {
  /** Ends the stream from the server's side: the reader receives `last`, then the end. */
  end(last?: Frame): void;
};

export type LiveFramesOptions<Frame> = {
  clock: Clock;
  /** Opens the source. The signal aborts when the reader leaves or the stream is ended. */
  open(signal: AbortSignal): AsyncGenerator<Frame>;
  /** Sent when the source has been silent for `idleMs`. */
  idleFrame: Frame;
  /** Default: KEEP_ALIVE_INTERVAL_MS. */
  idleMs?: number;
  /** Called for every frame of the source, not for idle frames. */
  onFrame?(frame: Frame): void;
  /** Called once, when the stream is over. */
  onClose?(): void;
};

/**
 * Returns the frames of a source, with an idle frame after every silent period. Pull-based. Unlike a generator, the
 * result can be closed while a frame is pending. `return` aborts the source's signal and calls `onClose` at once, then
 * waits for the source to finish.
 */
export function liveFrames<Frame>(options: LiveFramesOptions<Frame>): LiveFrames<Frame> {
  const { clock, open, idleFrame, idleMs = KEEP_ALIVE_INTERVAL_MS } = options;
  const closing = new AbortController();
  const source = open(closing.signal);
  let pending: Promise<IteratorResult<Frame>> | null = null;
  let waiter: PromiseWithResolvers<IteratorResult<Frame>> | null = null;
  let silentSinceMs = clock.monotonicMs();
  let last: { frame: Frame } | null = null;
  let sourceReturned: Promise<unknown> = Promise.resolve();

  function answerWaiter(result: IteratorResult<Frame>): void {
    waiter?.resolve(result);
    waiter = null;
  }

  function close(): void {
    if (closing.signal.aborted) return;
    closing.abort();
    // A suspended source returns at once; a running one after its current frame, which the signal ends.
    sourceReturned = source.return(undefined).catch(() => undefined);
    options.onClose?.();
    if (waiter !== null) answerWaiter(resultAfterClose());
  }

  function resultAfterClose(): IteratorResult<Frame> {
    if (last === null) return { done: true, value: undefined };
    const { frame } = last;
    last = null;
    return { done: false, value: frame };
  }

  /** Sends idle frames with one timer for the whole stream: a timer for each frame would cost more than the frame. */
  async function sendIdleFrames(): Promise<void> {
    for (;;) {
      await clock.sleep(silentSinceMs + idleMs - clock.monotonicMs(), closing.signal);
      if (clock.monotonicMs() - silentSinceMs < idleMs) continue;
      silentSinceMs = clock.monotonicMs();
      answerWaiter({ done: false, value: idleFrame });
    }
  }
  // Rejects only when the stream closes.
  sendIdleFrames().catch(() => undefined);

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      if (closing.signal.aborted) return resultAfterClose();
      silentSinceMs = clock.monotonicMs();
      const mine = Promise.withResolvers<IteratorResult<Frame>>();
      waiter = mine;
      pending ??= source.next();
      pending.then(
        (result) => {
          if (waiter !== mine) return;
          pending = null;
          if (result.done !== true) options.onFrame?.(result.value);
          answerWaiter(result);
          if (result.done === true) close();
        },
        (error: unknown) => {
          if (waiter !== mine) return;
          waiter = null;
          mine.reject(error);
          close();
        },
      );
      return mine.promise;
    },
    async return() {
      last = null;
      close();
      await sourceReturned;
      return { done: true, value: undefined };
    },
    end(frame) {
      last = frame === undefined ? null : { frame };
      close();
    },
  };
}

/**
 * Pings the peer until the socket closes, and terminates the socket when the peer is dead. A paused socket cannot
 * receive pongs, so it is not terminated. A peer that still accepts data counts as alive, however slowly it reads.
 */
export function pingPeer(socket: WebSocket, clock: Clock): void {
  const closed = new AbortController();
  let missed = 0;
  let unsentBytes = 0;
  socket.once('close', () => closed.abort());
  socket.on('pong', () => {
    missed = 0;
  });

  async function sendPings(): Promise<void> {
    for (;;) {
      await clock.sleep(KEEP_ALIVE_INTERVAL_MS, closed.signal);
      const isMoving = socket.bufferedAmount < unsentBytes;
      unsentBytes = socket.bufferedAmount;
      missed = isMoving || socket.isPaused ? 0 : missed + 1;
      if (missed > MAX_MISSED_PONGS) socket.terminate();
      else if (socket.readyState === socket.OPEN) socket.ping();
    }
  }
  // Rejects only when the socket closes.
  sendPings().catch(() => undefined);
}
