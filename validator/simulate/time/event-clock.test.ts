/** Tests that time jumps to the next timer, and that results arrive in the order of their requests. */
import { argon2 } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { derivedRandom } from '#shared/runtime/random.ts';
import { collectGarbage } from '../../../test/measure/collect-garbage.ts';
import { createEventClock, type EventClock } from './event-clock.ts';
import { createEventHeap } from './event-heap.ts';

const START_MS = 1_800_000_000_000;
let clock: EventClock | null = null;

afterEach(() => clock?.close());

const open = (): EventClock => {
  clock = createEventClock(START_MS);
  return clock;
};

it('runs timers by time, and timers of one time in the order of their addition', async () => {
  const time = open();
  const seen: string[] = [];
  const note = (name: string, ms: number) =>
    void time.sleep(ms).then(() => seen.push(`${name} ${time.now() - START_MS}`));
  note('late', 5_000);
  note('first', 1_000);
  note('second', 1_000);
  note('fraction', 0.5);
  await time.runUntil(START_MS + 4_000);
  expect(seen).toEqual(['fraction 1', 'first 1000', 'second 1000']);
  expect(time.now()).toBe(START_MS + 4_000);
  await time.runUntil(START_MS + 9_000);
  expect(seen.at(-1)).toBe('late 5000');
});

it('runs all consequences of a timer before the next timer', async () => {
  const time = open();
  const seen: string[] = [];
  void time.sleep(1_000).then(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise<void>((resolve, reject) =>
      argon2('argon2id', COST, (error) => (error ? reject(error) : resolve())),
    );
    await time.gate.pass(async () => undefined);
    seen.push('consequence');
  });
  void time.sleep(1_001).then(() => seen.push('next timer'));
  await time.runUntil(START_MS + 2_000);
  expect(seen).toEqual(['consequence', 'next timer']);
});

it('delivers results in the order of the requests, whichever ends first', async () => {
  const time = open();
  const seen: string[] = [];
  const slow = () => new Promise<string>((resolve) => setTimeout(() => resolve('slow'), 20));
  void time.gate.pass(slow).then((result) => seen.push(result));
  void time.gate.pass(async () => 'fast').then((result) => seen.push(result));
  await time.runUntil(START_MS);
  expect(seen).toEqual(['slow', 'fast']);
});

it('delivers a result after all consequences of the one before', async () => {
  const time = open();
  const random = derivedRandom('event clock', 'consequences');
  const steps = [
    () => Promise.resolve(),
    () => new Promise<void>((resolve) => process.nextTick(resolve)),
    () => new Promise<void>((resolve) => setImmediate(resolve)),
    () => new Promise<void>((resolve) => argon2('argon2id', COST, () => resolve())),
  ];
  const seen: string[] = [];
  async function consequence(result: number): Promise<void> {
    for (let left = random.int(12); left > 0; left -= 1) {
      // Work in the thread pool takes long, so it is rare.
      await steps[random.int(20) === 0 ? 3 : random.int(3)]?.();
    }
    seen.push(`${result}`);
  }
  const results = Array.from({ length: 200 }, (_, at) => at);
  for (const result of results) {
    void time.gate
      .pass(async () => result)
      .then(() => {
        seen.push(`begin ${result}`);
        void consequence(result);
        process.nextTick(() => void consequence(result));
      });
  }
  await time.runUntil(START_MS);
  expect(seen).toEqual(results.flatMap((at) => [`begin ${at}`, `${at}`, `${at}`]));
});

it('aborts sleepers and deadlines', async () => {
  const time = open();
  const aborted = new AbortController();
  const sleeper = time.sleep(1_000, aborted.signal).catch((error: unknown) => error);
  const deadline = time.deadline(500);
  aborted.abort('enough');
  await time.runUntil(START_MS + 400);
  expect(await sleeper).toBe('enough');
  expect(deadline.aborted).toBe(false);
  await time.runUntil(START_MS + 500);
  expect(deadline.reason.name).toBe('TimeoutError');
});

it('does not retain the signals of sleepers that have woken', async () => {
  const time = open();
  const stopping = new AbortController();
  const sleep = () => {
    const signal = AbortSignal.any([new AbortController().signal, stopping.signal]);
    void time.sleep(100, signal);
    return new WeakRef(signal);
  };
  const signals = Array.from({ length: 10 }, sleep);
  await time.runUntil(START_MS + 200);
  collectGarbage();
  expect(signals.filter((signal) => signal.deref() !== undefined)).toEqual([]);
});

it('aborts thousands of sleepers with one signal, in order, but none that has woken', async () => {
  const time = open();
  const aborted = new AbortController();
  const ends: string[] = [];
  for (let at = 0; at < 3_000; at += 1) {
    const isEarly = at % 3 === 0;
    void time.sleep(isEarly ? 100 : 1_000, aborted.signal).then(
      () => ends.push(`woken ${at}`),
      () => ends.push(`aborted ${at}`),
    );
  }
  await time.runUntil(START_MS + 500);
  expect([ends.length, ends[1]]).toEqual([1_000, 'woken 3']);
  aborted.abort();
  await time.runUntil(START_MS + 2_000);
  expect([ends.length, ends[1_000], ends.at(-1)]).toEqual([3_000, 'aborted 1', 'aborted 2999']);
});

it('completes work that waits for time, and passes its rejection on', async () => {
  const time = open();
  expect(await time.complete(time.sleep(7_000).then(() => time.now()))).toBe(START_MS + 7_000);
  await expect(time.complete(Promise.reject(new Error('no')))).rejects.toThrow('no');
});

it('jumps the wall clock without moving timers', async () => {
  const time = open();
  const woken = time.sleep(1_000).then(() => time.monotonicMs());
  time.jump(86_400_000);
  expect(time.now()).toBe(START_MS + 86_400_000);
  expect(await time.complete(woken)).toBe(1_000);
});

it('ends at an instant at which time stands still, and names the last timers', async () => {
  const problems: string[] = [];
  const time = createEventClock(START_MS, {
    maxAtOneInstant: 100,
    onStandstill: (problem) => void problems.push(problem),
  });
  clock = time;
  // Timers that were added before do not count.
  for (let at = 0; at < 500; at += 1) void time.sleep(10);
  await time.runUntil(START_MS + 20);
  expect(time.standstill()).toBeNull();
  async function livelock(): Promise<void> {
    for (;;) await time.sleep(0);
  }
  void livelock();
  await time.runUntil(START_MS + 1_000);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(/^100 timers .* due at once; the last by livelock /);
  await expect(time.complete(time.sleep(1))).rejects.toThrow('due at once');
});

it('returns thousands of timers in order, also after cancellations', () => {
  const heap = createEventHeap();
  const cancels = Array.from({ length: 5_000 }, (_, at) => {
    const dueMs = (at * 7_919) % 1_009;
    return { dueMs, cancel: heap.add(dueMs, () => undefined) };
  });
  const kept = cancels.filter((_, at) => at % 4 === 0).map(({ dueMs }) => dueMs);
  for (const [at, { cancel }] of cancels.entries()) if (at % 4 !== 0) cancel();
  expect(heap.size()).toBe(kept.length);
  const taken: number[] = [];
  for (let timer = heap.take(); timer !== null; timer = heap.take()) taken.push(timer.dueMs);
  expect(taken).toEqual(kept.toSorted((a, b) => a - b));
});

const COST = {
  message: Buffer.from('password'),
  nonce: Buffer.alloc(16),
  memory: 64,
  passes: 1,
  parallelism: 1,
  tagLength: 32,
};
