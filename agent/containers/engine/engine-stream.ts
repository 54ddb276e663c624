/** Streams of the engine: JSON lines (pulls, builds, imports, events) and the log's frames, bounded and typed. */
import type { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError, type LogChunk } from './engine.ts';

/** The engine sends lines of at most some kilobytes; more is no engine of ours. */
const MAX_LINE_CHARS = 1024 * 1024;
const HEADER_BYTES = 8;
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

/** dockerode's types know streams only by their old interface, which may also give text. */
export async function* bytesOf(stream: NodeJS.ReadableStream): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

/** The lines of a stream that fit `schema`, in order; others are left out. */
export async function* jsonLines<T>(
  stream: AsyncIterable<Uint8Array>,
  schema: z.ZodType<T>,
): AsyncGenerator<T> {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const chunk of stream) {
    pending += decoder.decode(chunk, { stream: true });
    const lines = pending.split('\n');
    pending = lines.pop() ?? '';
    if (pending.length > MAX_LINE_CHARS) throw new EngineError('unavailable', 'a line too long');
    for (const line of lines) {
      const parsed = schema.safeParse(parseJson(line));
      if (parsed.success) yield parsed.data;
    }
  }
}

/** Passes `source` on, and throws `image_stalled` when nothing comes for `idleMs`. */
export async function* withIdleLimit<T>(
  source: AsyncGenerator<T>,
  clock: Clock,
  idleMs: number,
): AsyncGenerator<T> {
  try {
    for (;;) {
      const arrived = new AbortController();
      const idle = clock.sleep(idleMs, arrived.signal).then(
        () => Promise.reject(new EngineError('image_stalled', `no byte for ${idleMs} ms`)),
        () => new Promise<never>(() => undefined),
      );
      const next = await Promise.race([source.next(), idle]).finally(() => arrived.abort());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited: a source that has stalled would hold up the error that says so.
    void source.return(undefined).catch(() => undefined);
  }
}

/** Cuts the engine's multiplexed log stream (8 byte header: stream, length) into its frames. */
export async function* logFrames(stream: AsyncIterable<Uint8Array>): AsyncGenerator<LogChunk> {
  let pending = Buffer.alloc(0);
  for await (const chunk of stream) {
    pending = pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([pending, chunk]);
    while (pending.length >= HEADER_BYTES) {
      const length = pending.readUInt32BE(4);
      if (length > MAX_FRAME_BYTES) throw new EngineError('unavailable', 'a log frame too long');
      const end = HEADER_BYTES + length;
      if (pending.length < end) break;
      yield {
        stream: pending[0] === 2 ? 'stderr' : 'stdout',
        data: pending.subarray(HEADER_BYTES, end),
      };
      pending = pending.subarray(end);
    }
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
