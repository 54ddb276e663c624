/** Reads the engine's streams: JSON lines (pulls, builds, imports, events) and log frames, with size limits. */
import type { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError, type LogChunk } from './engine.ts';

/** Limit of a line. Docker's lines have at most a few kilobytes. */
const MAX_LINE_CHARS = 1024 * 1024;
const HEADER_BYTES = 8;
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

/** Yields the bytes of a stream. dockerode types its streams as NodeJS.ReadableStream, whose chunks may be strings. */
export async function* bytesOf(stream: NodeJS.ReadableStream): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

/** Yields the lines that match `schema` and skips others. */
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
    if (pending.length > MAX_LINE_CHARS)
      throw new EngineError('unavailable', 'a line exceeds the limit');
    for (const line of lines) {
      const parsed = schema.safeParse(parseJson(line));
      if (parsed.success) yield parsed.data;
    }
  }
}

/** Passes `source` through. Throws `image_stalled` after `idleMs` without an item. */
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
    // Not awaited: a stalled source would block the error.
    void source.return(undefined).catch(() => undefined);
  }
}

/** Splits the engine's multiplexed log stream into frames (8-byte header: stream, length). */
export async function* logFrames(stream: AsyncIterable<Uint8Array>): AsyncGenerator<LogChunk> {
  let pending = Buffer.alloc(0);
  for await (const chunk of stream) {
    pending = pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([pending, chunk]);
    while (pending.length >= HEADER_BYTES) {
      const length = pending.readUInt32BE(4);
      if (length > MAX_FRAME_BYTES)
        throw new EngineError('unavailable', 'a log frame exceeds the limit');
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
