import { expect, it } from 'vitest';
import type { PullProgress } from '#shared/agent-api/pod.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { jsonLines, withIdleLimit } from './engine-stream.ts';
import { followPull, PULL_IDLE_MS, PullRecord } from './pull.ts';

async function* recordsOf(...records: PullRecord[]): AsyncGenerator<PullRecord> {
  yield* records;
}

const layer = (id: string, status: string, current?: number, total?: number): PullRecord => ({
  id,
  status,
  ...(total === undefined ? {} : { progressDetail: { current, total } }),
});

it('sums the layers', async () => {
  const seen: PullProgress[] = [];
  const records = recordsOf(
    { id: 'latest', status: 'Pulling from library/x' },
    layer('a', 'Pulling fs layer'),
    layer('b', 'Already exists'),
    layer('a', 'Downloading', 40, 100),
    layer('a', 'Download complete'),
    layer('a', 'Extracting', 10, 100),
    layer('a', 'Pull complete'),
    { status: 'Status: Downloaded newer image' },
  );
  await followPull(records, (progress) => seen.push(progress));
  const numbers = seen.map((p) => [p.layers_done, p.layers_total, p.bytes_done, p.bytes_total]);
  expect(numbers).toEqual([
    [0, 1, 0, 0],
    [1, 2, 0, 0],
    [1, 2, 40, 100],
    [1, 2, 100, 100],
    [1, 2, 100, 100],
    [2, 2, 100, 100],
  ]);
});

it('finds the error in a stream that began well', async () => {
  const records = recordsOf(layer('a', 'Pulling fs layer'), {
    error: 'short',
    errorDetail: { message: 'unauthorized: authentication required' },
  });
  await expect(followPull(records, () => undefined)).rejects.toMatchObject({ kind: 'image_auth' });
});

it('reads lines that arrive in pieces and leaves out what is no record', async () => {
  const text = '{"status":"ä1"}\nnonsense\n{"status":"2"}\n{"status":"unfinished"';
  const bytes = new TextEncoder().encode(text);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3);
  }
  const found = await Array.fromAsync(jsonLines(pieces(), PullRecord));
  expect(found.map((record) => record.status)).toEqual(['ä1', '2']);
});

it('gives up a stream that has gone silent, however long it ran before', async () => {
  const clock = createManualClock();
  async function* stalls() {
    for (let count = 0; count < 3; count += 1) {
      await clock.sleep(PULL_IDLE_MS - 1);
      yield count;
    }
    await new Promise(() => undefined);
  }
  const seen: number[] = [];
  const reading = (async () => {
    for await (const value of withIdleLimit(stalls(), clock, PULL_IDLE_MS)) seen.push(value);
  })();
  const outcome = expect(reading).rejects.toMatchObject({ kind: 'image_stalled' });
  await clock.advance(3 * PULL_IDLE_MS);
  expect(seen).toEqual([0, 1, 2]);
  await clock.advance(PULL_IDLE_MS);
  await outcome;
});
