import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock, type ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { syncTurnsWaiting } from '../../platform/metrics/backlog.store.ts';
import { createProcesses, LEASE_MS } from '../../platform/processes.ts';
import { enterQueue, type Release, WATCH_ENDED_MS } from './sync-queue.store.ts';
import { createSyncQueue, type Exchange } from './sync-queue.ts';

const PAUSE_MS = 10_000;

let db: Database;
let clock: ManualClock;
beforeEach(async () => {
  db = await createTestDatabase();
  clock = createManualClock();
});
afterEach(() => db.destroy());

/** The queue as a process of the central API uses it. */
async function openProcess(bootId: string) {
  const log = createLog({ name: 'test', level: 'silent' });
  const processes = createProcesses({ db, clock, log, bootId, shared: true });
  await processes.register();
  const queue = createSyncQueue({ db, clock, processes });
  const running = new Set<string>();

  async function exchange(given: Partial<Exchange> = {}): Promise<string[]> {
    const {
      limits = { total: 10, unreachable: 10, reserved: 0 },
      releases = [],
      wakes = [],
    } = given;
    const store = async () => undefined;
    const others = { releases, wakes, limits, aheadMs: 0, store };
    const { claims } = await queue.exchange({ ...others, running: [...running] });
    for (const { executorId } of releases) running.delete(executorId);
    for (const { executorId } of claims) running.add(executorId);
    return claims.map(({ executorId }) => executorId);
  }

  return {
    ...queue,
    exchange,
    claim: (total = 10, unreachable = total, reserved = 0) =>
      exchange({ limits: { total, unreachable, reserved } }),
    release: (executorId: string, change: Partial<Release> = {}) =>
      exchange({ releases: [releaseOf(executorId, change)], limits: NONE }),
    wake: (...wakes: string[]) => exchange({ wakes, limits: NONE }),
    beat: () => processes.register(),
    leave: () => processes.leave(),
  };
}

const NONE = { total: 0, unreachable: 0, reserved: 0 };

function releaseOf(executorId: string, change: Partial<Release> = {}): Release {
  return { executorId, failures: 0, pauseMs: PAUSE_MS, isEmpty: false, ...change };
}

/** Adds executors that are due in this order and that nothing has woken. */
async function addDue(...ids: string[]): Promise<void> {
  for (const id of ids) {
    await enterQueue(db, id, clock.now());
    await clock.advance(1);
  }
  await db.updateTable('sync_turns').set({ woken: 0 }).execute();
}

it('claims the executor that has been due for the longest time first', async () => {
  const one = await openProcess('one');
  await addDue('c', 'a', 'b');
  expect(await one.claim(2)).toEqual(['c', 'a']);
  expect(await one.claim()).toEqual(['b']);
  expect(await one.claim()).toEqual([]);
});

it('claims woken executors first, and executors that did not answer last', async () => {
  const one = await openProcess('one');
  await addDue('silent', 'early', 'late', 'woken', 'silent and woken');
  const all = await one.claim();
  const releases = all.map((id) =>
    releaseOf(id, { pauseMs: 0, failures: id.startsWith('silent') ? 1 : 0 }),
  );
  await one.exchange({ releases, limits: NONE });
  await one.wake('silent and woken', 'woken');
  expect(await one.claim()).toEqual([
    'woken',
    expect.stringMatching(/^(early|late)$/),
    expect.stringMatching(/^(early|late)$/),
    'silent and woken',
    'silent',
  ]);
});

it('limits the claims for executors that did not answer', async () => {
  const one = await openProcess('one');
  await addDue('silent 1', 'silent 2', 'silent 3', 'answering');
  for (const id of await one.claim()) {
    await one.release(id, { pauseMs: 0, failures: id === 'answering' ? 0 : 1 });
  }
  expect(await one.claim(3, 1)).toEqual(['answering', expect.stringMatching(/^silent/)]);
});

it('claims executors that did not answer also while all claims could go to others', async () => {
  const one = await openProcess('one');
  await addDue('silent');
  const [id = ''] = await one.claim();
  await one.release(id, { pauseMs: 0, failures: 1 });
  await addDue('a', 'b', 'c', 'd');
  expect(await one.claim(3)).toEqual(['a', 'b', 'silent']);
});

it('leaves reserved claims for executors that are woken later', async () => {
  const one = await openProcess('one');
  await addDue('a', 'b', 'c', 'd');
  expect(await one.claim(4, 4, 2)).toEqual(['a', 'b']);
  expect(await one.claim(2, 2, 2)).toEqual([]);
  await one.wake('d');
  expect(await one.claim(2, 2, 2)).toEqual(['d']);
});

it('reaches every executor when there are more than a process may claim', async () => {
  const one = await openProcess('one');
  const ids = Array.from({ length: 20 }, (_, index) => `node ${index}`);
  await addDue(...ids);
  const claimed: string[] = [];
  while (claimed.length < ids.length) {
    const batch = await one.claim(3);
    claimed.push(...batch);
    await one.exchange({ releases: batch.map((id) => releaseOf(id)), limits: NONE });
  }
  expect(claimed).toEqual(ids);
});

it('claims each executor in one process', async () => {
  const one = await openProcess('one');
  const other = await openProcess('other');
  await addDue('a', 'b', 'c', 'd');
  const [first, second] = await Promise.all([one.claim(), other.claim()]);
  await other.wake('a', 'b', 'c', 'd');
  const later = [...(await one.claim()), ...(await other.claim())];
  expect([...first, ...second, ...later].toSorted()).toEqual(['a', 'b', 'c', 'd']);
});

it('frees the claims of a process that ended or was killed between claim and release', async () => {
  const one = await openProcess('one');
  const other = await openProcess('other');
  await addDue('a', 'b');
  expect(await one.claim(1)).toEqual(['a']);
  expect(await other.claim()).toEqual(['b']);
  await other.leave();
  expect(await one.claim()).toEqual(['b']);
  const third = await openProcess('third');
  await one.beat();
  await clock.advance(LEASE_MS - 1);
  await third.beat();
  expect(await third.claim()).toEqual([]);
  await clock.advance(1);
  expect(await third.claim()).toEqual(['a', 'b']);
});

it('ignores the release of a claim that another process has taken over', async () => {
  const one = await openProcess('one');
  await addDue('a');
  await one.claim();
  await clock.advance(LEASE_MS);
  const other = await openProcess('other');
  expect(await other.claim()).toEqual(['a']);
  await one.release('a', { pauseMs: 0 });
  expect(await one.claim()).toEqual([]);
});

it('claims again what it has claimed without receiving the answer', async () => {
  const one = await openProcess('one');
  await addDue('a');
  await db.updateTable('sync_turns').set({ boot_id: 'one' }).execute();
  expect(await one.claim()).toEqual(['a']);
});

it('makes a released executor due after its pause, or at once if it was woken meanwhile', async () => {
  const one = await openProcess('one');
  await addDue('a', 'b');
  await one.claim();
  await one.wake('b');
  await one.release('a');
  await one.release('b');
  expect(await one.claim()).toEqual(['b']);
  await clock.advance(PAUSE_MS - 1);
  expect(await one.claim()).toEqual([]);
  await clock.advance(1);
  expect(await one.claim()).toEqual(['a']);
});

it('contains an executor only if the transaction that adds its pod commits', async () => {
  const one = await openProcess('one');
  const add = db.transaction().execute(async (tx) => {
    await enterQueue(tx, 'a', clock.now());
    throw new Error('undone');
  });
  await expect(add).rejects.toThrow('undone');
  await one.wake('a');
  expect(await one.claim()).toEqual([]);
});

it('keeps an executor for ten minutes after its last pod, and longer if it receives another', async () => {
  const one = await openProcess('one');
  const empty = { isEmpty: true, pauseMs: 0 };
  await addDue('a', 'b', 'c');
  const pass = async () => {
    for (const id of await one.claim()) await one.release(id, id === 'c' ? { pauseMs: 0 } : empty);
  };
  await pass();
  await clock.advance(WATCH_ENDED_MS - 1);
  await one.beat();
  await pass();
  expect(await one.claim()).toHaveLength(3);
  await clock.advance(1);
  await enterQueue(db, 'b', clock.now());
  await one.exchange({ releases: ['a', 'b', 'c'].map((id) => releaseOf(id, empty)), limits: NONE });
  const left = await db.selectFrom('sync_turns').select('executor_id').execute();
  expect(left.map(({ executor_id: id }) => id).toSorted()).toEqual(['b', 'c']);
});

it('measures the delay from the due time, also of woken executors, and leaves out claimed ones', async () => {
  const one = await openProcess('one');
  const dueAtMs = clock.now();
  await addDue('a');
  await clock.advance(60_000);
  await one.beat();
  await one.wake('a');
  const counted = () => syncTurnsWaiting(db, clock.now());
  expect(await one.delayMs()).toBe(clock.now() - dueAtMs);
  expect(await counted()).toEqual({ count: 1, oldestMs: dueAtMs });
  await one.claim();
  expect(await one.delayMs()).toBe(0);
  expect(await counted()).toEqual({ count: 0, oldestMs: null });
  await one.release('a', { failures: 1 });
  await clock.advance(PAUSE_MS + 1);
  expect(await one.delayMs()).toBe(1);
  expect(await counted()).toEqual({ count: 1, oldestMs: clock.now() - 1 });
});

it('makes executors due that a clock which was set back has put far into the future', async () => {
  const one = await openProcess('one');
  await addDue('a', 'b');
  await one.claim();
  await one.release('a', { pauseMs: 3_600_000 });
  await one.release('b', { pauseMs: 30_000 });
  await one.pullIn(30_000);
  expect(await one.claim()).toEqual(['a']);
});
