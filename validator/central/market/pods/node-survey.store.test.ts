import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../../test/bench/market-seed.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { beginRound, claimNodes } from './node-survey.store.ts';
import { enterQueue } from './sync-queue.store.ts';

const NODES = 5;
const INTERVAL_MS = 600_000;
const [A = '', B = '', C = '', D = '', E = ''] = Array.from(
  { length: NODES },
  (_, index) => `00000000-0000-4000-9000-${String(index).padStart(12, '0')}`,
);

let db: Database;
beforeEach(async () => {
  db = await createTestDatabase();
  await seedMarket(db, NODES);
  await beginRound(db, 0, false);
});
afterEach(() => db.destroy());

const claim = (nowMs = 0, limit = 2) =>
  db
    .transaction()
    .execute((tx) => claimNodes(tx, { nowMs, intervalMs: INTERVAL_MS, limit }))
    .then(({ ids }) => ids);

it('claims every node once in a round, and begins the next round after the interval', async () => {
  const first = [await claim(), await claim(), await claim()];
  expect(first).toEqual([[A, B], [C, D], [E]]);
  expect([await claim(), await claim(INTERVAL_MS - 1)]).toEqual([[], []]);
  expect(await claim(INTERVAL_MS)).toEqual([A, B]);
});

it('gives no node to two processes that claim at the same time', async () => {
  const claimed = (await Promise.all([claim(), claim(), claim(), claim()])).flat();
  expect(new Set(claimed).size).toBe(claimed.length);
  const rest = [await claim(), await claim(), await claim()].flat();
  expect([...claimed, ...rest].toSorted()).toEqual([A, B, C, D, E]);
});

it('leaves out nodes that the pod sync visits, and nodes that may receive no rentals', async () => {
  await enterQueue(db, A, 0);
  await db.updateTable('executors').set({ state: 'failed' }).where('id', '=', B).execute();
  const failed = { state: 'failed' as const, unknown_pods: 1 };
  await db.updateTable('executors').set(failed).where('id', '=', C).execute();
  const removed = { state: 'removed' as const, unknown_pods: 1 };
  await db.updateTable('executors').set(removed).where('id', '=', D).execute();
  expect([await claim(), await claim(), await claim()]).toEqual([[], [C], [E]]);
});

it('continues the round of other processes, and begins again for a process that starts alone', async () => {
  await claim();
  await beginRound(db, 1, false);
  expect(await claim(1)).toEqual([C, D]);
  await beginRound(db, 2, true);
  expect(await claim(2)).toEqual([A, B]);
});

it('begins a round early whose time is too far ahead, because the clock was set back', async () => {
  const laterMs = 10 * INTERVAL_MS;
  expect(await claim(laterMs, NODES + 1)).toHaveLength(NODES);
  expect(await claim(laterMs)).toEqual([]);
  expect(await claim(0)).toEqual([A, B]);
});
