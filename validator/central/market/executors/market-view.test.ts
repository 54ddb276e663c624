import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { seedMarket } from '../../../../test/bench/market-seed.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { freeSlotsOf, takeSlots } from './gpu-slot.store.ts';
import { createMarketView } from './market-view.ts';

const NODES = 300;
const ROUNDS = 120;

let db: Database;

beforeEach(async () => {
  db = await createTestDatabase();
  await seedMarket(db, NODES);
});
afterEach(() => db.destroy());

/** The result of a direct query. */
function offered() {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select(['executors.id', 'price_uusd_per_gpu_hour as price', 'slots_free', 'machine_name'])
    .where('state', '=', 'verified')
    .where('paused', '=', 0)
    .where('opted_in', '=', 1)
    .where('banned_at', 'is', null)
    .where('slots_free', '>=', 1)
    .whereRef('slots_free', '>=', (eb) => eb.fn.coalesce('min_gpu_count', 'slots_total'))
    .execute();
}

/** Figures of all offered nodes, counted anew. */
async function counted() {
  const nodes = await db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .selectAll('executors')
    .where('state', '=', 'verified')
    .where('paused', '=', 0)
    .where('opted_in', '=', 1)
    .where('banned_at', 'is', null)
    .execute();
  const priceOf = (node: (typeof nodes)[number]) => node.price_uusd_per_gpu_hour;
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  return [...Map.groupBy(nodes, ({ machine_name: name, gpu_type: type }) => name ?? type)]
    .map(([machine, group]) => ({
      machine,
      nodes: group.length,
      availableNodes: group.filter(({ slots_free: free }) => free > 0).length,
      gpus: sum(group.map(({ slots_total: total }) => total)),
      freeGpus: sum(group.map(({ slots_free: free }) => free)),
      minPrice: Math.min(...group.map(priceOf)),
      maxPrice: Math.max(...group.map(priceOf)),
      priceSum: sum(group.map(priceOf)),
      sizes: [1, 2, 4, 8].map((size) => {
        const able = group.filter(
          ({ slots_total: total, min_gpu_count: minimum }) =>
            total >= size && (minimum ?? total) <= size,
        );
        return {
          size,
          able: able.length,
          free: able.filter(({ slots_free: free }) => free >= size).length,
          minPrice: able.length === 0 ? 0 : Math.min(...able.map(priceOf)),
        };
      }),
    }))
    .sort((a, b) => a.minPrice - b.minPrice || (a.machine < b.machine ? -1 : 1));
}

async function present(): Promise<number> {
  const rows = await db
    .selectFrom('executors')
    .select('id')
    .where('state', '<>', 'removed')
    .execute();
  return rows.length;
}

it('returns the same nodes and figures as the database, cheapest first, after any change', async () => {
  const random = createSeededRandom(11);
  const view = createMarketView({ db });
  const ids = (await db.selectFrom('executors').select('id').execute()).map(({ id }) => id);
  const anyone = () => ids[random.int(ids.length)] ?? '';
  const set = (change: object, id = anyone()) =>
    db.updateTable('executors').set(change).where('id', '=', id).execute();
  const changes: (() => Promise<unknown>)[] = [
    () => set({ price_uusd_per_gpu_hour: random.int(4_000_000) }),
    () => set({ state: random.int(2) === 0 ? 'failed' : 'verified' }),
    () => set({ paused: random.int(2) }),
    () => set({ state: 'removed', removed_at: 2 }),
    () => set({ machine_name: `NVIDIA ${random.int(9)}`, inventory_json: '{}' }),
    () => set({ min_gpu_count: random.int(2) === 0 ? null : 1 }),
    () => takeSlots(db, anyone(), [0, 1], `pod ${random.int(5)}`),
    () => freeSlotsOf(db, `pod ${random.int(5)}`),
    () =>
      db
        .updateTable('providers')
        .set({ opted_in: random.int(4) === 0 ? 0 : 1 })
        .execute(),
  ];
  const markets = new Set<string>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let left = random.int(6); left > 0; left -= 1)
      await changes[random.int(changes.length)]?.();
    const seen = (await view.offers()).nodes.map(({ node }) => ({
      id: node.id,
      price: node.price_uusd_per_gpu_hour,
      slots_free: node.slots_free,
      machine_name: node.machine_name,
    }));
    const inOrder = (await offered()).sort((a, b) => a.price - b.price || (a.id < b.id ? -1 : 1));
    expect(seen).toEqual(inOrder);
    expect((await view.figures()).byMachine()).toEqual(await counted());
    expect((await view.figures()).present()).toBe(await present());
    markets.add(JSON.stringify(seen));
  }
  // Ensures that the test made changes.
  expect(markets.size).toBeGreaterThan(ROUNDS / 3);
});

it('excludes rolled back changes, and includes changes committed before the call', async () => {
  const view = createMarketView({ db });
  const before = (await view.offers()).nodes.length;
  const failed = db.transaction().execute(async (tx) => {
    await tx.updateTable('executors').set({ paused: 1 }).execute();
    throw new Error('rolled back');
  });
  await expect(failed).rejects.toThrow('rolled back');
  expect((await view.offers()).nodes).toHaveLength(before);

  const early = view.offers();
  await db.updateTable('executors').set({ paused: 1 }).execute();
  const counts = await Promise.all([view.offers(), view.offers()]);
  expect(counts.map(({ nodes }) => nodes.length)).toEqual([0, 0]);
  await early;
});

it('includes every change that another process has committed to the same file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'central.db');
  const [one, other] = [await openCentralDatabase(path), await openCentralDatabase(path)];
  await seedMarket(one, 40);
  const view = createMarketView({ db: one });
  const machines = async () => (await view.figures()).byMachine();
  const [first] = (await view.offers()).nodes;
  const id = first?.id ?? '';
  const before = (await machines()).find(({ machine }) => machine === first?.machineName);

  const tx = await other.startTransaction().execute();
  await takeSlots(tx, id, [0, 1, 2, 3, 4, 5, 6, 7], 'pod of the other process');
  expect((await view.offers()).nodes.map((node) => node.id)).toContain(id);
  await tx.commit().execute();
  expect((await view.offers()).nodes.map((node) => node.id)).not.toContain(id);
  const after = (await machines()).find(({ machine }) => machine === first?.machineName);
  expect(after).toMatchObject({
    nodes: before?.nodes,
    availableNodes: (before?.availableNodes ?? 0) - 1,
    freeGpus: (before?.freeGpus ?? 0) - (first?.node.slots_free ?? 0),
  });
  await other.updateTable('executors').set({ state: 'removed' }).where('id', '=', id).execute();
  expect((await view.figures()).present()).toBe(39);
  await Promise.all([one.destroy(), other.destroy()]);
});

it('does not change the revision of a node if only columns that are not listed change', async () => {
  const revisions = () =>
    db.selectFrom('executors').select(['id', 'revision']).orderBy('id').execute();
  const before = await revisions();
  await db.updateTable('executors').set({ last_seen_at: 5, updated_at: 5 }).execute();
  expect(await revisions()).toEqual(before);
});
