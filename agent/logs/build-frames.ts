/** The log of a pod's build as frames, which come before those of its container (contract 7). */

import { dataFrame } from '#shared/http/event-stream.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { LogText } from './keep-alive.ts';
import type { LogPosition } from './log-frames.ts';

/** A line of a build: `seq` counts them without a hole, one that is missing was dropped. */
export type BuildLogLine = { seq: number; ms: number; log: string };

export type BuildLogSource = {
  /** Changes whenever there is more to read. */
  revision(key: string): string;
  /** What is kept, oldest first. */
  read(key: string): Promise<readonly BuildLogLine[]>;
};

export const NO_BUILDS: BuildLogSource = { revision: () => '', read: async () => [] };

/** How frame ids name a build; the key is hex, as a container's id is. */
const ID_CHARS = 12;
const NS_PER_MS = 1_000_000n;

export function shortBuildId(key: string): string {
  return key.slice(0, ID_CHARS);
}

/** Which lines a reader wants: after a frame of this build, after a time, or the last so many. */
export type BuildStart =
  | { kind: 'frame'; container: string; at: LogPosition }
  | { kind: 'time'; ms: number }
  | { kind: 'tail'; lines: number };

/** Remembers what was sent; `more` gives what came since, and costs nothing while nothing did. */
export function createBuildReader(builds: BuildLogSource, key: string, start: BuildStart) {
  let seen: string | null = null;
  let last: { seq: number; ms: number } | null = null;

  function isNew(line: BuildLogLine): boolean {
    if (last !== null) return line.ms > last.ms || (line.ms === last.ms && line.seq > last.seq);
    if (start.kind === 'tail') return true;
    if (start.kind === 'time') return line.ms >= start.ms;
    const ns = BigInt(line.ms) * NS_PER_MS;
    // Another container's time: what was built before it ran was seen.
    const own = start.container === shortBuildId(key);
    return ns > start.at.ns || (own && ns === start.at.ns && line.seq > start.at.seq);
  }

  return {
    async more(): Promise<LogText> {
      const revision = builds.revision(key);
      if (revision === seen) return '';
      seen = revision;
      const fresh = (await builds.read(key)).filter(isNew);
      const isFirst = last === null;
      const wanted = isFirst && start.kind === 'tail' ? lastOf(fresh, start.lines) : fresh;
      let text = '';
      let before = isFirst ? wanted[0]?.seq : (last?.seq ?? 0) + 1;
      for (const line of wanted) {
        const dropped = line.seq - (before ?? line.seq);
        if (dropped > 0)
          text += dataFrame({ meta: 'gap', reason: 'build output dropped', dropped });
        text += frameOf(key, line);
        before = line.seq + 1;
      }
      last = fresh.at(-1) ?? last ?? (start.kind === 'tail' ? { seq: -1, ms: 0 } : null);
      return text;
    },
  };
}

function lastOf<T>(lines: readonly T[], count: number): readonly T[] {
  return count === 0 ? [] : lines.slice(-count);
}

function frameOf(key: string, { seq, ms, log }: BuildLogLine): string {
  const id = `${shortBuildId(key)}.${BigInt(ms) * NS_PER_MS}.${seq}`;
  return dataFrame({ log, id, ts: `${naiveUtc(ms)}Z`, stream: 'stdout' });
}
