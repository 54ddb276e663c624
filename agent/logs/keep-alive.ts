/** Streams that a reader can leave at any moment and that show life while nothing happens. */
import type { LogFrame } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import { dataFrame } from '#shared/http/sse.ts';

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
 * a frame is being waited for: `return` aborts the signal given to `open` and calls `onClose` at once.
 */
export function liveFrames(
  clock: Clock,
  open: (signal: AbortSignal) => AsyncGenerator<LogText>,
  onClose: () => void,
): LiveFrames {
  const leaving = new AbortController();
  const batches = open(leaving.signal);
  let pending: Promise<IteratorResult<LogText>> | null = null;
  let quiet = new AbortController();
  let last: LogFrame | null = null;

  function close(): void {
    if (leaving.signal.aborted) return;
    leaving.abort();
    quiet.abort();
    onClose();
  }

  function afterClose(): IteratorResult<LogText> {
    const frame = last;
    last = null;
    return frame === null
      ? { done: true, value: undefined }
      : { done: false, value: dataFrame(frame) };
  }

  /** The next batch, or an empty frame when none came in time. Rejects when the stream is left. */
  async function batchOrSilence(): Promise<IteratorResult<LogText>> {
    pending ??= batches.next();
    quiet = new AbortController();
    const silence = clock.sleep(KEEP_ALIVE_MS, quiet.signal).then(() => null);
    try {
      const result = await Promise.race([pending, silence]);
      if (result === null) return { done: false, value: dataFrame({}) };
      pending = null;
      return result;
    } finally {
      // Ended by us; that rejection is not news.
      silence.catch(() => undefined);
      quiet.abort();
    }
  }

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      if (leaving.signal.aborted) return afterClose();
      try {
        const result = await batchOrSilence();
        if (result.done === true) close();
        return result;
      } catch (error) {
        if (leaving.signal.aborted) return afterClose();
        close();
        throw error;
      }
    },
    async return() {
      close();
      last = null;
      // Queued behind the batch that is waited for, which the signal ends.
      await batches.return(undefined).catch(() => undefined);
      return { done: true, value: undefined };
    },
    end(frame) {
      last = frame;
      close();
    },
  };
}
