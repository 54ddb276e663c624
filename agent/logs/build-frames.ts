/** The log of an image build as frames. They precede the frames of the pod's container. */
import { dataFrame } from '#shared/http/event-stream.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { type FrameText, type LogPosition, shortId } from './log-frames.ts';

/** Line of a build log. `seq` has no holes except for dropped lines. */
export type BuildLogLine = { seq: number; ms: number; log: string };

export type BuildLogSource = {
  /** Returns a value that changes whenever there are new lines. */
  revision(key: string): string;
  /** Returns the retained lines, oldest first. */
  read(key: string): Promise<readonly BuildLogLine[]>;
};

export const NO_BUILDS: BuildLogSource = { revision: () => '', read: async () => [] };

const NS_PER_MS = 1_000_000n;

/** Start of a read: after a frame, at a time, or at the last `lines` lines. */
export type BuildStart =
  | { kind: 'frame'; container: string; at: LogPosition }
  | { kind: 'time'; ms: number }
  | { kind: 'tail'; lines: number };

/** Returns a reader whose `more` yields the lines since the last call; cheap while there are none. */
export function createBuildReader(builds: BuildLogSource, key: string, start: BuildStart) {
  let lastRevision: string | null = null;
  let last: { seq: number; ms: number } | null = null;

  function isNew(line: BuildLogLine): boolean {
    if (last !== null) return line.ms > last.ms || (line.ms === last.ms && line.seq > last.seq);
    if (start.kind === 'tail') return true;
    if (start.kind === 'time') return line.ms >= start.ms;
    const ns = BigInt(line.ms) * NS_PER_MS;
    // For a resume after a container's frame only the time counts: earlier build lines were already sent.
    const isOfBuild = start.container === shortId(key);
    return ns > start.at.ns || (isOfBuild && ns === start.at.ns && line.seq > start.at.seq);
  }

  return {
    async more(): Promise<FrameText> {
      const revision = builds.revision(key);
      if (revision === lastRevision) return '';
      lastRevision = revision;
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
  const id = `${shortId(key)}.${BigInt(ms) * NS_PER_MS}.${seq}`;
  return dataFrame({ log, id, ts: `${naiveUtc(ms)}Z`, stream: 'stdout' });
}
