/** Streams that a reader can leave at any moment and that show life while nothing happens. */
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import type { Clock } from '#shared/runtime/clock.ts';

/** How long a stream may be silent. */
export const KEEP_ALIVE_MS = 15_000;

/** Frames that came together, as they go over the wire; never empty. One wait for all of them, not one per line. */
export type LogText = string;

export type LiveFrames = AsyncIterableIterator<LogText> & {
  /** Ends the stream from our side: the reader gets `last` and nothing more. */
  end(last: LogFrame): void;
};

/**
 * `open`'s frames, with an empty frame after every quiet period. Unlike a generator it can be left while
 * a frame is being waited for: `return` aborts the signal given to `open` and calls `onClose` at once. `onBatch` gets
 * what `open` gives, and nothing that only shows life.
 */
export function liveFrames(
  clock: Clock,
  open: (signal: AbortSignal) => AsyncGenerator<LogText>,
  onClose: () => void,
  onBatch: (text: LogText) => void = () => undefined,
): LiveFrames {
  const leaving = new AbortController();
  const batches = open(leaving.signal);
  let pending: Promise<IteratorResult<LogText>> | null = null;
  let waiter: PromiseWithResolvers<IteratorResult<LogText>> | null = null;
  let quietSinceMs = clock.monotonicMs();
  let last: LogFrame | null = null;
  let closed: Promise<unknown> = Promise.resolve();

  /** Answers the reader that waits, if one does. */
  function answer(result: IteratorResult<LogText>): void {
    waiter?.resolve(result);
    waiter = null;
  }

  function close(): void {
    if (leaving.signal.aborted) return;
    leaving.abort();
    // At once when it stands still, otherwise behind the batch that is waited for, which the signal ends.
    closed = batches.return(undefined).catch(() => undefined);
    onClose();
    if (waiter !== null) answer(afterClose());
  }

  function afterClose(): IteratorResult<LogText> {
    const frame = last;
    last = null;
    return frame === null
      ? { done: true, value: undefined }
      : { done: false, value: dataFrame(frame) };
  }

  /** One timer for the whole stream: a timer for each batch costs more than the batch. */
  async function breakSilence(): Promise<void> {
    for (;;) {
      await clock.sleep(quietSinceMs + KEEP_ALIVE_MS - clock.monotonicMs(), leaving.signal);
      if (clock.monotonicMs() - quietSinceMs < KEEP_ALIVE_MS) continue;
      quietSinceMs = clock.monotonicMs();
      answer({ done: false, value: dataFrame({}) });
    }
  }
  // It ends by being aborted; that rejection is not news.
  breakSilence().catch(() => undefined);

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      if (leaving.signal.aborted) return afterClose();
      quietSinceMs = clock.monotonicMs();
      const mine = Promise.withResolvers<IteratorResult<LogText>>();
      waiter = mine;
      pending ??= batches.next();
      pending.then(
        (result) => {
          if (waiter !== mine) return;
          pending = null;
          if (result.done !== true) onBatch(result.value);
          answer(result);
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
      await closed;
      return { done: true, value: undefined };
    },
    end(frame) {
      last = frame;
      close();
    },
  };
}
