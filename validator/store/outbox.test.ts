import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import { openEvidenceStore } from './evidence-store.ts';
import {
  createOutbox,
  type Delivery,
  MAX_ATTEMPTS,
  type Outbox,
  type Outcome,
  outcomeOf,
  pauseAfter,
} from './outbox.service.ts';
import { enqueue, type Message } from './outbox.store.ts';
import type { EvidenceStore } from './tables.ts';

const log = createLog({ name: 'test', level: 'silent' });
const down: Outcome = { state: 'unavailable', reason: 'down' };

let store: EvidenceStore;
let clock: ManualClock;
let answers: Outcome[] = [];
let delivered: string[] = [];
let parked: string[] = [];
let outbox: Outbox;
beforeEach(async () => {
  store = await openEvidenceStore(':memory:');
  clock = createManualClock();
  [answers, delivered, parked] = [[], [], []];
  const delivery: Delivery = {
    async deliver({ subject }) {
      delivered.push(subject);
      return answers.shift() ?? { state: 'delivered' };
    },
    async onParked({ subject }) {
      parked.push(subject);
    },
  };
  outbox = createOutbox({
    store,
    clock,
    random: createSeededRandom(1),
    log,
    deliveries: {
      'set-weights': delivery,
      'health-report': delivery,
      'report-outcome': delivery,
    },
  });
});
afterEach(() => store.destroy());

/** Enqueues a message in partition `a` unless `change` names another. */
const add = (subject: string, change: Partial<Message> = {}, replaces?: number) => {
  const message = { kind: 'set-weights', subject, partitionKey: 'a', rank: 0, body: '{}' } as const;
  return enqueue(store, { ...message, next_ms: clock.now(), ...change }, replaces);
};
const left = async () =>
  (await store.selectFrom('outbox').select('subject').orderBy('seq').execute()).map(
    (row) => row.subject,
  );

it('delivers every message once and in order', async () => {
  for (const subject of ['3', '1', '2']) await add(subject);
  await outbox.runOnce();
  await outbox.runOnce();
  expect([delivered, await left()]).toEqual([['3', '1', '2'], []]);
});

it('retries in order and after growing pauses while the receiver is unavailable', async () => {
  await add('1');
  await add('2');
  answers = [down, down, down];
  const startedMs = clock.now();
  const attemptedAfterS: number[] = [];
  while (delivered.length < 5) {
    const before = delivered.length;
    await outbox.runOnce();
    if (delivered.length > before)
      attemptedAfterS.push(Math.floor((clock.now() - startedMs) / 1_000));
    await clock.advance(250);
  }
  expect([delivered, await left()]).toEqual([['1', '1', '1', '1', '2'], []]);
  const [first = 0, second = 0, third = 0, fourth = 0] = attemptedAfterS;
  expect(second - first).toBeLessThan(third - second + 1);
  expect(fourth).toBeGreaterThanOrEqual(3);
});

it('does not retry before the pause is over, unless the clock was set back', async () => {
  await add('1');
  answers = [down];
  await outbox.runOnce();
  await outbox.runOnce();
  expect(delivered).toEqual(['1']);
  await store
    .updateTable('outbox')
    .set({ next_ms: clock.now() + 86_400_000 })
    .execute();
  await outbox.runOnce();
  expect(delivered).toEqual(['1', '1']);
});

it('parks refused messages with the reason and continues', async () => {
  await add('1');
  await add('2');
  answers = [{ state: 'refused', reason: 'status 422' }];
  await outbox.runOnce();
  expect([delivered, parked, await left()]).toEqual([['1', '2'], ['1'], ['1']]);
  await clock.advance(86_400_000);
  await outbox.runOnce();
  expect(delivered).toEqual(['1', '2']);
  const [row] = await store.selectFrom('outbox').selectAll().execute();
  expect(row).toMatchObject({ attempts: 1, last_error: 'status 422' });
});

it('parks a message after the last attempt', async () => {
  await add('1');
  answers = Array(MAX_ATTEMPTS).fill(down);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    await outbox.runOnce();
    await clock.advance(300_000);
  }
  expect([delivered.length, parked]).toEqual([MAX_ATTEMPTS, ['1']]);
});

it('retains the newest 100 messages', async () => {
  for (let subject = 1; subject <= 103; subject += 1) await add(String(subject));
  expect([(await left()).length, (await left())[0]]).toEqual([100, '4']);
  answers = Array(103).fill({ state: 'refused', reason: '' });
  await outbox.runOnce();
  for (let subject = 201; subject <= 203; subject += 1) await add(String(subject));
  await outbox.runOnce();
  expect([(await left()).length, (await left()).at(-1)]).toEqual([100, '203']);
});

describe('partitions', () => {
  it('do not block each other and keep their order', async () => {
    for (const [subject, partitionKey] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
      ['b2', 'b'],
    ] as const) {
      await add(subject, { partitionKey });
    }
    answers = [down];
    await outbox.runOnce();
    expect([delivered, await left()]).toEqual([
      ['a1', 'b1', 'b2'],
      ['a1', 'a2'],
    ]);
    await clock.advance(1_000);
    await outbox.runOnce();
    expect(delivered.slice(3)).toEqual(['a1', 'a2']);
  });

  it('are not all tried while the receiver is unavailable', async () => {
    for (let lane = 0; lane < 20; lane += 1)
      await add(String(lane), { partitionKey: String(lane) });
    answers = Array(20).fill(down);
    await outbox.runOnce();
    expect([delivered.length, (await left()).length]).toEqual([8, 20]);
  });

  it('deliver each message once when passes overlap', async () => {
    for (let lane = 0; lane < 20; lane += 1)
      await add(String(lane), { partitionKey: String(lane) });
    await Promise.all([outbox.runOnce(), outbox.runOnce(), outbox.runOnce()]);
    expect([delivered.length, new Set(delivered).size, await left()]).toEqual([20, 20, []]);
  });
});

it('replaces waiting messages of the same partition up to the given rank, but no parked ones', async () => {
  await add('parked');
  answers = [{ state: 'refused', reason: '' }];
  await outbox.runOnce();
  await add('0', { rank: 0 });
  await add('1', { rank: 1 });
  await add('elsewhere', { partitionKey: 'b' });
  await add('2', { rank: 0 }, 0);
  expect(await left()).toEqual(['parked', '1', 'elsewhere', '2']);
  await add('3', { rank: 1 }, 1);
  expect(await left()).toEqual(['parked', 'elsewhere', '3']);
});

it('uses the same idempotency key for every attempt with the same body', async () => {
  await add('1', { body: '{"a":1}' });
  answers = [down];
  const keys = () => store.selectFrom('outbox').select('idempotency_key').execute();
  const before = await keys();
  await outbox.runOnce();
  expect(await keys()).toEqual(before);
  expect(before[0]?.idempotency_key).toMatch(
    /^015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862$/,
  );
});

describe('an attempt', () => {
  it.each([
    [400, 'refused'],
    [401, 'refused'],
    [422, 'refused'],
    [408, 'unavailable'],
    [409, 'unavailable'],
    [429, 'unavailable'],
    [500, 'unavailable'],
    [302, 'unavailable'],
  ])('answered with %d is %s', (status, state) => {
    expect(outcomeOf(status, 'why')).toEqual({ state, reason: 'why' });
  });

  it('is followed by a pause of one second to five minutes, half of it random', () => {
    expect([pauseAfter(1, 0), pauseAfter(1, 0.999)]).toEqual([500, 1_000]);
    expect([pauseAfter(4, 0), pauseAfter(200, 0), pauseAfter(200, 0.5)]).toEqual([
      4_000, 150_000, 225_000,
    ]);
  });
});
