import { expect, it } from 'vitest';
import {
  type BuildLogLine,
  type BuildLogSource,
  type BuildStart,
  createBuildReader,
} from './build-frames.ts';

const KEY = 'ab'.repeat(20);
const OTHER = 'c0ffee'.repeat(2);

function logOf(...lines: BuildLogLine[]): BuildLogSource & { add(line: BuildLogLine): void } {
  return {
    revision: () => String(lines.length),
    read: async () => lines,
    add: (line) => void lines.push(line),
  };
}
const line = (seq: number, ms = 1_000 + seq): BuildLogLine => ({ seq, ms, log: `line ${seq}\n` });

async function readAll(source: BuildLogSource, start: BuildStart): Promise<unknown[]> {
  return framesOf(await createBuildReader(source, KEY, start).more());
}

function framesOf(text: string): { log?: string; id?: string; dropped?: number }[] {
  return text.split('\n\n').flatMap((part) => (part === '' ? [] : [JSON.parse(part.slice(6))]));
}

it('sends log frames, and resumes after the id of any frame', async () => {
  const source = logOf(line(0), line(1), line(2));
  const [first, second] = framesOf(
    await createBuildReader(source, KEY, { kind: 'tail', lines: 100 }).more(),
  );
  expect(first).toEqual({
    log: 'line 0\n',
    id: `${KEY.slice(0, 12)}.1000000000.0`,
    ts: '1970-01-01T00:00:01.000000Z',
    stream: 'stdout',
  });
  const [container = '', ns = 0, seq] = second?.id?.split('.') ?? [];
  const at = { ns: BigInt(ns), seq: Number(seq) };
  const rest = await readAll(source, { kind: 'frame', container, at });
  expect(rest).toMatchObject([{ log: 'line 2\n' }]);
});

it('begins at the last lines or at a time, and sends nothing to a reader that resumes after a frame of the container', async () => {
  const source = logOf(line(0), line(1), line(2));
  const logs = async (start: BuildStart) =>
    framesOf(await createBuildReader(source, KEY, start).more()).map(({ log }) => log);
  expect(await logs({ kind: 'tail', lines: 2 })).toEqual(['line 1\n', 'line 2\n']);
  expect(await logs({ kind: 'tail', lines: 0 })).toEqual([]);
  expect(await logs({ kind: 'time', ms: 1_002 })).toEqual(['line 2\n']);
  const at = { ns: 2_000_000_000n, seq: 0 };
  expect(await logs({ kind: 'frame', container: OTHER, at })).toEqual([]);
});

it('follows the build, also when it starts again, and reports dropped lines', async () => {
  const source = logOf(line(0));
  const reader = createBuildReader(source, KEY, { kind: 'tail', lines: 10 });
  expect(framesOf(await reader.more())).toMatchObject([{ log: 'line 0\n' }]);
  expect(await reader.more()).toBe('');
  source.add(line(4));
  expect(framesOf(await reader.more())).toMatchObject([
    { meta: 'gap', dropped: 3 },
    { log: 'line 4\n' },
  ]);
  source.add(line(0, 9_000));
  expect(framesOf(await reader.more())).toMatchObject([{ log: 'line 0\n' }]);
});
