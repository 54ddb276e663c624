import { expect, it } from 'vitest';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { createTokenBuckets } from './token-bucket.ts';

const RATE = { quota: 600, windowMs: 60_000 };

it('allows the whole quota at once, and then one request for each refilled token', async () => {
  const clock = createManualClock();
  const buckets = createTokenBuckets(RATE, { clock, maxKeys: 10 });
  for (let left = 599; left >= 0; left -= 1) {
    expect(buckets.take('a')).toMatchObject({ allowed: true, remaining: left });
  }
  expect(buckets.take('a')).toEqual({
    allowed: false,
    remaining: 0,
    resetSeconds: 60,
    retrySeconds: 1,
  });
  await clock.advance(99);
  expect(buckets.take('a').allowed).toBe(false);
  await clock.advance(1);
  expect(buckets.take('a').allowed).toBe(true);
  expect(buckets.take('a').allowed).toBe(false);
  await clock.advance(3_600_000);
  expect(buckets.take('a')).toMatchObject({ allowed: true, remaining: 599, resetSeconds: 1 });
});

it('never allows a key more than the quota plus the refill, regardless of other keys', async () => {
  const clock = createManualClock();
  const random = createSeededRandom(7);
  const buckets = createTokenBuckets({ quota: 20, windowMs: 10_000 }, { clock, maxKeys: 100 });
  const startMs = clock.monotonicMs();
  let passed = 0;
  for (let step = 0; step < 3_000; step += 1) {
    await clock.advance(random.int(200));
    buckets.take(`other ${random.int(50)}`);
    if (buckets.take('a').allowed) passed += 1;
    expect(passed).toBeLessThanOrEqual(20 + (clock.monotonicMs() - startMs) / 500 + 1e-6);
  }
  expect(passed).toBeGreaterThan((clock.monotonicMs() - startMs) / 500 - 1);
});

it('holds at most the maximum number of keys, and drops the least recently used one', () => {
  const buckets = createTokenBuckets(
    { quota: 1, windowMs: 60_000 },
    { clock: createManualClock(), maxKeys: 3 },
  );
  for (const key of ['a', 'b', 'c']) buckets.take(key);
  expect(buckets.take('a').allowed).toBe(false);
  buckets.take('d');
  expect(buckets.size()).toBe(3);
  expect(buckets.take('a').allowed).toBe(false);
  expect(buckets.take('b').allowed).toBe(true);
  for (let index = 0; index < 10_000; index += 1) buckets.take(`x${index}`);
  expect(buckets.size()).toBe(3);
});

it('divides the quota by the number of processes, also while the number changes', async () => {
  const clock = createManualClock();
  let processes = 3;
  const buckets = createTokenBuckets(RATE, { clock, maxKeys: 10, divisor: () => processes });
  expect(buckets.quota()).toBe(200);
  for (let left = 199; left >= 0; left -= 1) {
    expect(buckets.take('a')).toMatchObject({ allowed: true, remaining: left });
  }
  expect(buckets.take('a')).toMatchObject({ allowed: false, resetSeconds: 60, retrySeconds: 1 });
  processes = 1;
  await clock.advance(60_000);
  expect(buckets.take('a')).toMatchObject({ allowed: true, remaining: 599 });
  // A process that starts takes its part at once.
  processes = 2;
  expect(buckets.take('a')).toMatchObject({ allowed: true, remaining: 299 });
  processes = 1_000;
  expect(buckets.quota()).toBe(1);
});
