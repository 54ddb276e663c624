import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Clock, systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createManualClock, type ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createTestDatabase, onPostgres } from '../../../../test/fakes/scenes/central-database.ts';
import { TRUSTED_CLOCK } from '../../../../test/fakes/trusted-clock.ts';
import { createNotifier, withNotifier } from '../database/notifier.ts';
import type { Database } from '../database/tables.ts';
import { clearDue, type DueKind, dueAt, ensureDue, setDue } from './due.ts';
import { LOOK_AT_LEAST_EVERY_MS } from './pace.ts';
import { createSchedule, type Due, type DueHandlers } from './schedule.ts';

const MINUTE_MS = 60_000;
const log = createLog({ name: 'test', level: 'silent' });

let db: Database;
let clock: ManualClock;
let startMs: number;
let done: (Due & { kind: DueKind })[];

beforeEach(async () => {
  db = await createTestDatabase();
  clock = createManualClock();
  startMs = clock.now();
  done = [];
});
afterEach(() => db.destroy());

const noted = (kind: DueKind) => ({
  run: async (_: unknown, due: Due) => {
    done.push({ kind, ...due });
    return undefined;
  },
});
const KINDS = ['retention', 'cut-off', 'grace-end'] as const;
const HANDLERS: DueHandlers = Object.fromEntries(KINDS.map((kind) => [kind, noted(kind)]));

/** Creates the schedule of one process. Several schedules on one database represent several processes. */
function schedule(handlers: DueHandlers = HANDLERS, on: Partial<Clock> = {}) {
  const notifier = createNotifier(systemClock);
  const handle = withNotifier(db, notifier);
  const schedule = createSchedule({
    db: handle,
    clock: { ...clock, ...on },
    random: systemRandom,
    log,
    notifier,
    trust: TRUSTED_CLOCK,
    handlers,
  });
  return { ...schedule, db: handle };
}

const set = (kind: DueKind, subject: string, inMs: number) =>
  db.transaction().execute((tx) => setDue(tx, kind, subject, startMs + inMs));
const subjects = () => done.map((due) => due.subject);
const row = (subject: string) =>
  db.selectFrom('due_work').selectAll().where('subject', '=', subject).executeTakeFirst();

it('runs work once, not before its due time, and passes the due time to the handler', async () => {
  await set('retention', 'a', MINUTE_MS);
  const { runDue } = schedule();
  await clock.advance(MINUTE_MS - 1);
  await runDue();
  expect(done).toEqual([]);
  await clock.advance(1);
  await runDue();
  await runDue();
  const due = { kind: 'retention', subject: 'a', dueAtMs: startMs + MINUTE_MS };
  expect(done).toEqual([{ ...due, nowMs: startMs + MINUTE_MS }]);
});

it('after a jump of the clock, runs all due work in order and passes each due time', async () => {
  await set('retention', 'c', 3 * MINUTE_MS);
  await set('cut-off', 'a', MINUTE_MS);
  await set('grace-end', 'b', 2 * MINUTE_MS);
  await clock.advance(40 * 24 * 60 * MINUTE_MS);
  await schedule().runDue();
  expect(done.map(({ subject, dueAtMs }) => [subject, dueAtMs - startMs])).toEqual([
    ['a', MINUTE_MS],
    ['b', 2 * MINUTE_MS],
    ['c', 3 * MINUTE_MS],
  ]);
  expect(new Set(done.map(({ nowMs }) => nowMs))).toEqual(new Set([clock.now()]));
});

it('runs work that a handler schedules before work that has a later due time', async () => {
  await set('cut-off', 'first', MINUTE_MS);
  await set('retention', 'last', 3 * MINUTE_MS);
  await clock.advance(5 * MINUTE_MS);
  const cutOff = {
    run: async (tx: Parameters<typeof setDue>[0], due: Due) => {
      done.push({ kind: 'cut-off', ...due });
      await setDue(tx, 'grace-end', 'between', due.dueAtMs + MINUTE_MS);
      return undefined;
    },
  };
  await schedule({ ...HANDLERS, 'cut-off': cutOff }).runDue();
  expect(subjects()).toEqual(['first', 'between', 'last']);
});

it('does not run work before its due time when the clock goes backwards', async () => {
  await set('retention', 'a', MINUTE_MS);
  await clock.advance(MINUTE_MS);
  await schedule(HANDLERS, { now: () => clock.now() - 1 }).runDue();
  expect(done).toEqual([]);
  await schedule().runDue();
  expect(subjects()).toEqual(['a']);
});

it('stores one row for each kind and subject: a new due time replaces the old one', async () => {
  await set('retention', 'a', MINUTE_MS);
  await set('retention', 'a', 2 * MINUTE_MS);
  await set('cut-off', 'a', 3 * MINUTE_MS);
  await ensureDue(db, 'retention', 'a', startMs);
  expect(await dueAt(db, 'retention', 'a')).toBe(startMs + 2 * MINUTE_MS);
  await clock.advance(MINUTE_MS);
  const { runDue } = schedule();
  await runDue();
  expect(done).toEqual([]);
  await clearDue(db, 'cut-off', 'a');
  await clock.advance(5 * MINUTE_MS);
  await runDue();
  expect(done.map(({ kind }) => kind)).toEqual(['retention']);
  expect(await dueAt(db, 'retention', 'a')).toBeNull();
});

it('schedules work again for the time that its handler returns or sets', async () => {
  await set('retention', 'again', 0);
  await set('cut-off', 'own', 0);
  const handlers: DueHandlers = {
    retention: { run: async (_, { dueAtMs }) => ({ againAtMs: dueAtMs + MINUTE_MS }) },
    'cut-off': {
      run: async (tx, { subject, dueAtMs }) => {
        await setDue(tx, 'cut-off', subject, dueAtMs + 2 * MINUTE_MS);
        return undefined;
      },
    },
  };
  await schedule(handlers).runDue();
  expect(await dueAt(db, 'retention', 'again')).toBe(startMs + MINUTE_MS);
  expect(await dueAt(db, 'cut-off', 'own')).toBe(startMs + 2 * MINUTE_MS);
});

it('rolls back failed work and retries it with growing pauses; other work continues', async () => {
  await set('cut-off', 'poison', 0);
  await set('retention', 'healthy', 1);
  await clock.advance(1);
  let tries = 0;
  let heals = false;
  const cutOff = {
    run: async (tx: Parameters<typeof setDue>[0], due: Due) => {
      tries += 1;
      await setDue(tx, 'grace-end', 'half', startMs);
      if (!heals) throw new Error('not today');
      done.push({ kind: 'cut-off', ...due });
      return undefined;
    },
  };
  const { runDue } = schedule({ ...HANDLERS, 'cut-off': cutOff });
  await runDue();
  expect(subjects()).toEqual(['healthy']);
  expect(await row('half')).toBeUndefined();
  expect(await row('poison')).toMatchObject({ attempts: 1, last_error: 'not today' });
  await clock.advance(999);
  await runDue();
  expect(tries).toBe(1);
  await clock.advance(1);
  await runDue();
  await clock.advance(1_000);
  await runDue();
  expect(tries).toBe(2);
  heals = true;
  await clock.advance(300_000);
  await runDue();
  expect(done.find(({ kind }) => kind === 'cut-off')?.dueAtMs).toBe(startMs);
  expect(await row('poison')).toBeUndefined();
});

it('if another transaction reschedules work that is being started, uses the new due time', async () => {
  await set('cut-off', 'a', 0);
  const handlers: DueHandlers = {
    'cut-off': {
      // Simulates another transaction that has already taken the lock.
      lock: (tx) => setDue(tx, 'cut-off', 'a', startMs + MINUTE_MS),
      ...noted('cut-off'),
    },
  };
  await schedule(handlers).runDue();
  expect(done).toEqual([]);
  expect(await dueAt(db, 'cut-off', 'a')).toBe(startMs + MINUTE_MS);
});

it('leaves work of kinds without a handler to other processes', async () => {
  await set('cut-off', 'a', 0);
  await schedule({ retention: noted('retention') }).runDue();
  await schedule({}).runDue();
  expect(done).toEqual([]);
  await schedule().runDue();
  expect(subjects()).toEqual(['a']);
});

it('runs work once even if several processes poll at the same time', async () => {
  const count = 30;
  for (let index = 0; index < count; index += 1) await set('retention', `${index}`, index);
  await clock.advance(count);
  const processes = onPostgres() ? [schedule(), schedule(), schedule()] : [schedule()];
  await Promise.all(processes.map(({ runDue }) => runDue()));
  expect(new Set(subjects()).size).toBe(count);
  expect(done).toHaveLength(count);
});

it('polls when the earliest work is due, and polls earlier if work with an earlier due time is scheduled', async () => {
  startMs = systemClock.now();
  await set('retention', 'first', 100);
  const running = schedule(HANDLERS, systemClock);
  // The regular polls follow only after a longer time.
  const becomes = (subject: string) =>
    eventually(subject, () => subjects().includes(subject), LOOK_AT_LEAST_EVERY_MS / 2);
  running.start();
  try {
    await becomes('first');
    await running.db
      .transaction()
      .execute((tx) => setDue(tx, 'retention', 'second', systemClock.now()));
    await becomes('second');
    expect(done.every(({ dueAtMs, nowMs }) => nowMs >= dueAtMs)).toBe(true);
  } finally {
    await running.stop();
  }
});
