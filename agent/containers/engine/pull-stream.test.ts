import { expect, it } from 'vitest';
import { MAX_BYTES, MAX_WAIT_SECONDS } from '#shared/api/agent/bounds.ts';
import { PullProgress } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { jsonLines, withIdleLimit } from './engine-stream.ts';
import {
  followPull,
  PULL_BASE_MS,
  PULL_IDLE_MS,
  PULL_LONGEST_MS,
  PullRecord,
  pullBudgetMs,
} from './pull-stream.ts';

async function* recordsOf(...records: PullRecord[]): AsyncGenerator<PullRecord> {
  yield* records;
}

const layer = (id: string, status: string, current?: number, total?: number): PullRecord => ({
  id,
  status,
  ...(total === undefined ? {} : { progressDetail: { current, total } }),
});

const done = { status: 'Status: Downloaded newer image' };

/** Yields the records with a pause before each. */
async function* slowly(clock: Clock, ms: number, records: PullRecord[]) {
  for (const record of records) {
    await clock.sleep(ms);
    yield record;
  }
}

it('reports progress per layer and in total', async () => {
  const seen: PullProgress[] = [];
  const records = recordsOf(
    { id: 'latest', status: 'Pulling from library/x' },
    layer('a', 'Pulling fs layer'),
    layer('b', 'Already exists'),
    layer('a', 'Downloading', 40, 100),
    layer('a', 'Download complete'),
    layer('a', 'Extracting', 10, 100),
    layer('a', 'Pull complete'),
    done,
  );
  await followPull(records, createManualClock(), (progress) => seen.push(progress));
  const numbers = seen.map((p) => [
    ...[p.layers_done, p.layers_total, p.bytes_done, p.bytes_total, p.bytes_extracted],
    p.layers.map(({ state }) => state).join(' '),
  ]);
  expect(numbers).toEqual([
    [0, 1, 0, 0, 0, 'waiting'],
    [1, 2, 0, 0, 0, 'waiting done'],
    [1, 2, 40, 100, 0, 'downloading done'],
    [1, 2, 100, 100, 0, 'downloaded done'],
    [1, 2, 100, 100, 10, 'extracting done'],
    [2, 2, 100, 100, 100, 'done done'],
  ]);
});

it('limits reported sizes and times to the bounds of the response schema', async () => {
  const clock = createManualClock();
  const seen: PullProgress[] = [];
  const huge = (id: string, bytes: number) => layer(id, 'Downloading', bytes, 1e300);
  const parts = [huge('a', 1), huge('b', 1), huge('a', 2), layer('b', 'Download complete')];
  const records = slowly(clock, 1_000, [...parts, layer('a', 'Download complete'), done]);
  const following = followPull(records, clock, (progress) => seen.push(progress));
  await clock.advance(10_000);
  await following;
  expect(seen.map((progress) => PullProgress.parse(progress))).toHaveLength(5);
  expect(seen.map((p) => p.eta_seconds)).toContain(MAX_WAIT_SECONDS);
  expect(seen.at(-1)).toMatchObject({ bytes_done: MAX_BYTES, bytes_total: MAX_BYTES });
});

it('computes speed and remaining time over the last seconds', async () => {
  const clock = createManualClock();
  const seen: PullProgress[] = [];
  const parts = [100, 200, 300, 400, 450].map((bytes) => layer('a', 'Downloading', bytes, 1_000));
  const records = slowly(clock, 1_000, [...parts, layer('a', 'Download complete'), done]);
  const following = followPull(records, clock, (progress) => seen.push(progress));
  await clock.advance(10_000);
  await following;
  expect(seen.map((p) => [p.bytes_per_second, p.eta_seconds])).toEqual([
    [0, null],
    [100, 8],
    [100, 7],
    [100, 6],
    [88, 7],
    [180, null],
  ]);
});

it('does not count a retry countdown or repeated bytes as progress', async () => {
  const clock = createManualClock();
  const retry = layer('a', 'Retrying in 5 seconds');
  const again = layer('a', 'Downloading', 40, 100);
  const records = [again, ...Array.from({ length: 9 }, () => [retry, again]).flat()];
  const following = followPull(slowly(clock, 20_000, records), clock, () => undefined);
  const outcome = expect(following).rejects.toMatchObject({ kind: 'image_stalled' });
  await clock.advance(200_000);
  await outcome;
});

/** The engine reports a download in pieces of this size. */
const PIECE = 512 * 1024;

/** Downloads pieces of a layer, with a pause before each. Resolves with the time of a deadline; null if the pull succeeds. */
async function deadlineOf(count: number, pauseMs: number): Promise<number | null> {
  const clock = createManualClock();
  const startedMs = clock.monotonicMs();
  const pieces = Array.from({ length: count }, (_, n) =>
    layer('a', 'Downloading', (n + 1) * PIECE, count * PIECE),
  );
  const records = [...pieces, layer('a', 'Download complete'), done];
  const following = followPull(slowly(clock, pauseMs, records), clock, () => undefined);
  const ended = following.then(
    () => null,
    (error: unknown) => {
      expect(error).toMatchObject({ kind: 'deadline' });
      return clock.monotonicMs() - startedMs;
    },
  );
  await clock.advance((records.length + 1) * pauseMs);
  return ended;
}

it('continues beyond ten minutes while 1 MB per minute arrives, to at most two hours', async () => {
  expect(await deadlineOf(200, 31_000)).toBeNull();
  const endedMs = await deadlineOf(300, 31_000);
  expect(endedMs).toBeGreaterThan(PULL_LONGEST_MS);
  expect(endedMs).toBeLessThan(PULL_LONGEST_MS + 31_000);
});

it('aborts a pull with less than 1 MB per minute after ten minutes', async () => {
  const endedMs = await deadlineOf(100, 33_000);
  expect(endedMs).toBeGreaterThan(PULL_BASE_MS);
  expect(endedMs).toBeLessThan(PULL_BASE_MS + 33_000);
});

it('extends the time limit for a large image', () => {
  expect(pullBudgetMs(20 * 1024 ** 3)).toBe(PULL_BASE_MS + 20 * 1024 * 1_000);
  expect(pullBudgetMs(1)).toBe(PULL_LONGEST_MS);
});

it('reports an error record that follows successful records', async () => {
  const records = recordsOf(layer('a', 'Pulling fs layer'), {
    error: 'short',
    errorDetail: { message: 'unauthorized: authentication required' },
  });
  const following = followPull(records, createManualClock(), () => undefined);
  await expect(following).rejects.toMatchObject({ kind: 'image_auth' });
});

it('treats a stream without a final status as a failure', async () => {
  const records = recordsOf(layer('a', 'Pull complete'));
  const following = followPull(records, createManualClock(), () => undefined);
  await expect(following).rejects.toMatchObject({ kind: 'image_unreachable' });
});

it('joins JSON lines split across chunks and skips other text', async () => {
  const text = '{"status":"ä1"}\nnonsense\n{"status":"2"}\n{"status":"unfinished"';
  const bytes = new TextEncoder().encode(text);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3);
  }
  const found = await Array.fromAsync(jsonLines(pieces(), PullRecord));
  expect(found.map((record) => record.status)).toEqual(['ä1', '2']);
});

it('aborts a stream that stops sending records, however long it ran before', async () => {
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
