import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock, type ManualClock } from '../../../test/fakes/manual-clock.ts';
import { createSeededRandom } from '../../../test/fakes/seeded-random.ts';
import type { Ledger } from '../ledger.tables.ts';
import { openLedger } from '../ledger.ts';
import { createOutbox, type Delivery, type Outbox } from './outbox.service.ts';
import { MAX_ATTEMPTS, type Outcome, outcomeOf, pauseAfter } from './outbox.state.ts';
import { enqueue, type Letter } from './outbox.store.ts';

const log = createLog({ name: 'test', level: 'silent' });
const down: Outcome = { state: 'unavailable', reason: 'down' };

let ledger: Ledger;
let clock: ManualClock;
let answers: Outcome[] = [];
let told: string[] = [];
let parked: string[] = [];
let outbox: Outbox;
beforeEach(async () => {
  ledger = await openLedger(':memory:');
  clock = createManualClock();
  [answers, told, parked] = [[], [], []];
  const delivery: Delivery = {
    async deliver({ subject }) {
      told.push(subject);
      return answers.shift() ?? { state: 'taken' };
    },
    async onParked({ subject }) {
      parked.push(subject);
    },
  };
  outbox = createOutbox({
    ...{ ledger, clock, random: createSeededRandom(1), log },
    deliveries: { 'set-weights': delivery, 'health-report': delivery },
  });
});
afterEach(() => ledger.destroy());

/** In one lane unless it has one of its own. */
const add = (subject: string, change: Partial<Letter> = {}, replaces?: number) => {
  const letter = { kind: 'set-weights', subject, lane: 'a', rank: 0, body: '{}' } as const;
  return enqueue(ledger, { ...letter, next_ms: clock.now(), ...change }, replaces);
};
const left = async () =>
  (await ledger.selectFrom('outbox').select('subject').orderBy('seq').execute()).map(
    (row) => row.subject,
  );

it('tells everything once, in order', async () => {
  for (const subject of ['3', '1', '2']) await add(subject);
  await outbox.runOnce();
  await outbox.runOnce();
  expect([told, await left()]).toEqual([['3', '1', '2'], []]);
});

it('keeps the order while the other side is away, and asks at growing pauses', async () => {
  await add('1');
  await add('2');
  answers = [down, down, down];
  const startedMs = clock.now();
  const askedAfterS: number[] = [];
  while (told.length < 5) {
    const before = told.length;
    await outbox.runOnce();
    if (told.length > before) askedAfterS.push(Math.floor((clock.now() - startedMs) / 1_000));
    await clock.advance(250);
  }
  expect([told, await left()]).toEqual([['1', '1', '1', '1', '2'], []]);
  const [first = 0, second = 0, third = 0, fourth = 0] = askedAfterS;
  expect(second - first).toBeLessThan(third - second + 1);
  expect(fourth).toBeGreaterThanOrEqual(3);
});

it('is not told what waits, however often it is looked at, unless the clock was set back', async () => {
  await add('1');
  answers = [down];
  await outbox.runOnce();
  await outbox.runOnce();
  expect(told).toEqual(['1']);
  await ledger
    .updateTable('outbox')
    .set({ next_ms: clock.now() + 86_400_000 })
    .execute();
  await outbox.runOnce();
  expect(told).toEqual(['1', '1']);
});

it('parks what is refused, with the reason, and goes on', async () => {
  await add('1');
  await add('2');
  answers = [{ state: 'refused', reason: 'status 422' }];
  await outbox.runOnce();
  expect([told, parked, await left()]).toEqual([['1', '2'], ['1'], ['1']]);
  await clock.advance(86_400_000);
  await outbox.runOnce();
  expect(told).toEqual(['1', '2']);
  const [row] = await ledger.selectFrom('outbox').selectAll().execute();
  expect(row).toMatchObject({ attempts: 1, last_error: 'status 422' });
});

it('gives up in the end', async () => {
  await add('1');
  answers = Array(MAX_ATTEMPTS).fill(down);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    await outbox.runOnce();
    await clock.advance(300_000);
  }
  expect([told.length, parked]).toEqual([MAX_ATTEMPTS, ['1']]);
});

it('holds no more than so many, the newest', async () => {
  for (let subject = 1; subject <= 103; subject += 1) await add(String(subject));
  expect([(await left()).length, (await left())[0]]).toEqual([100, '4']);
  answers = Array(103).fill({ state: 'refused', reason: '' });
  await outbox.runOnce();
  for (let subject = 201; subject <= 203; subject += 1) await add(String(subject));
  await outbox.runOnce();
  expect([(await left()).length, (await left()).at(-1)]).toEqual([100, '203']);
});

describe('lanes', () => {
  it('do not wait for each other, and keep their own order', async () => {
    for (const [subject, lane] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
      ['b2', 'b'],
    ] as const) {
      await add(subject, { lane });
    }
    answers = [down];
    await outbox.runOnce();
    expect([told, await left()]).toEqual([
      ['a1', 'b1', 'b2'],
      ['a1', 'a2'],
    ]);
    await clock.advance(1_000);
    await outbox.runOnce();
    expect(told.slice(3)).toEqual(['a1', 'a2']);
  });

  it('are left alone while nobody listens', async () => {
    for (let lane = 0; lane < 20; lane += 1) await add(String(lane), { lane: String(lane) });
    answers = Array(20).fill(down);
    await outbox.runOnce();
    expect([told.length, (await left()).length]).toEqual([8, 20]);
  });

  it('tell everything once, however many ask for it', async () => {
    for (let lane = 0; lane < 20; lane += 1) await add(String(lane), { lane: String(lane) });
    await Promise.all([outbox.runOnce(), outbox.runOnce(), outbox.runOnce()]);
    expect([told.length, new Set(told).size, await left()]).toEqual([20, 20, []]);
  });
});

it('replaces what says no more than the new one, of the same lane, but nothing given up', async () => {
  await add('parked');
  answers = [{ state: 'refused', reason: '' }];
  await outbox.runOnce();
  await add('0', { rank: 0 });
  await add('1', { rank: 1 });
  await add('elsewhere', { lane: 'b' });
  await add('2', { rank: 0 }, 0);
  expect(await left()).toEqual(['parked', '1', 'elsewhere', '2']);
  await add('3', { rank: 1 }, 1);
  expect(await left()).toEqual(['parked', 'elsewhere', '3']);
});

it('names a letter by its body, the same with every attempt', async () => {
  await add('1', { body: '{"a":1}' });
  answers = [down];
  const keys = () => ledger.selectFrom('outbox').select('idempotency_key').execute();
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

  it('is followed by a pause of one second to five minutes, half of it by chance', () => {
    expect([pauseAfter(1, 0), pauseAfter(1, 0.999)]).toEqual([500, 1_000]);
    expect([pauseAfter(4, 0), pauseAfter(200, 0), pauseAfter(200, 0.5)]).toEqual([
      4_000, 150_000, 225_000,
    ]);
  });
});
