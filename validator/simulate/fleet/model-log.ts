/** A pod's log in memory, served as an agent does: tail, since, follow, rotation, and connections that break. */
import type { LogFrame } from '#shared/api/agent/pod.ts';

export type ModelLog = ReturnType<typeof createModelLog>;
type Query = { tail: number; follow: boolean; since?: string };
type Reader = { wake(): void; outcome: 'lost' | 'ended' | null };
type Line = Extract<LogFrame, { log: string }>;

/** Line `number` in the form of a frame. */
export function modelLine(number: number, text = `line ${number}\n`): Line {
  return { log: text, id: `c.${number}.0`, ts: '2026-11-20T00:00:00Z', stream: 'stdout' };
}

export function createModelLog() {
  let lines: Line[] = [];
  const queries: Query[] = [];
  const reading = new Set<Reader>();

  function wakeAll(): void {
    for (const reader of reading) reader.wake();
  }

  function start({ tail, since }: Query): { at: number; gap: boolean } {
    if (since === undefined) return { at: Math.max(0, lines.length - tail), gap: false };
    if (/^\d+$/.test(since)) return { at: lines.findIndex(isAfter(Number(since))), gap: false };
    const at = lines.findIndex((line) => line.id === since);
    return { at: at + 1, gap: at === -1 };
  }

  return {
    /** Queries received, in order. */
    queries,
    /** Number of streams that follow the log now. */
    followers: () => reading.size,
    write(...written: Line[]): void {
      lines.push(...written);
      wakeAll();
    },
    /** Drops the oldest lines. */
    rotate(count: number): void {
      lines = lines.slice(count);
    },
    /** Ends every stream: `lost` without an end frame, `ended` with one, as a stopping agent does. */
    cut(outcome: 'lost' | 'ended'): void {
      for (const reader of reading) reader.outcome = outcome;
      wakeAll();
    },
    async *open(query: Query, signal: AbortSignal): AsyncGenerator<LogFrame> {
      const { at, gap } = start(query);
      if (gap) yield { meta: 'gap', reason: 'rotated' };
      const rest = at === -1 ? [] : lines.slice(at);
      yield* rest;
      if (!query.follow) return;
      let last = rest.at(-1) ?? lines.at(-1);
      const reader: Reader = { wake: () => undefined, outcome: null };
      reading.add(reader);
      try {
        while (!signal.aborted) {
          if (reader.outcome === 'lost') throw new Error('connection lost');
          if (reader.outcome === 'ended') return yield { meta: 'end' };
          const fresh = lines.slice(last === undefined ? 0 : lines.indexOf(last) + 1);
          last = fresh.at(-1) ?? last;
          yield* fresh;
          if (fresh.length > 0) continue;
          await new Promise<void>((resolve) => {
            reader.wake = resolve;
            signal.addEventListener('abort', () => resolve(), { once: true });
          });
        }
      } finally {
        reading.delete(reader);
      }
    },
  };
}

function isAfter(ms: number): (line: Line) => boolean {
  return ({ id }) => Number(id.split('.')[1]) >= ms * 1e6;
}
