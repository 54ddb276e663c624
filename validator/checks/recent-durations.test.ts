import { afterEach, beforeEach, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { executorId } from '../../test/fixtures/cycle-set.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { saveDuration } from './proof-baseline.store.ts';
import { createRecentDurations, type RecentDurations } from './recent-durations.ts';

const MODEL = 'card';

let clock: ManualClock;
let store: EvidenceStore;
let recent: RecentDurations;
beforeEach(async () => {
  clock = createManualClock(0);
  store = await openEvidenceStore(':memory:');
  recent = createRecentDurations({ store, clock, isShared: true });
});
afterEach(() => store.destroy());

const duration = (number: number, mean_ms: number) => ({
  executor_id: executorId(number),
  mean_ms,
  samples: 1,
});
const stored = (number: number, mean_ms: number) =>
  saveDuration(store, {
    ...duration(number, mean_ms),
    device: 'gpu',
    model: MODEL,
    seen_ms: number,
  });
const means = async () => (await recent.of('gpu', MODEL)).map(({ mean_ms: ms }) => ms);

it('reads a model once, and follows the records of this process', async () => {
  await stored(1, 100);
  await stored(2, 200);
  expect(await means()).toEqual([200, 100]);
  await stored(1, 110);
  recent.replace('gpu', MODEL, duration(1, 110));
  expect(await means()).toEqual([110, 200]);
  // A record of another process.
  await stored(3, 300);
  expect(await means()).toEqual([110, 200]);
  await clock.advance(60_000);
  expect(await means()).toEqual([300, 200, 110]);
});

it('does not read a model again if no other process records durations', async () => {
  recent = createRecentDurations({ store, clock, isShared: false });
  await stored(1, 100);
  expect(await means()).toEqual([100]);
  await stored(2, 200);
  await clock.advance(86_400_000);
  expect(await means()).toEqual([100]);
});

it('reads all models again after the hardware of an executor changed', async () => {
  await stored(1, 100);
  expect(await means()).toEqual([100]);
  expect(await recent.of('cpu', MODEL)).toEqual([]);
  await stored(2, 200);
  recent.clear();
  expect(await means()).toEqual([200, 100]);
});

it('compares the newest 200 executors', async () => {
  for (let number = 1; number <= 200; number += 1) await stored(number, number);
  expect(await means()).toHaveLength(200);
  recent.replace('gpu', MODEL, duration(201, 201));
  const now = await means();
  expect([now.length, now[0], now.at(-1)]).toEqual([200, 201, 2]);
});
