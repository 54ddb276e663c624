import { afterEach, beforeEach, expect, it } from 'vitest';
import type { GpuTopology } from '#shared/api/agent/inventory.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { testInventory } from '../../../../test/fixtures/host-inventory.ts';
import { isPostgres } from '../../../database/engine.ts';
import { marketFigures } from '../../platform/database/migrations/0007-market-figures.ts';
import { POSTGRES_DIALECT, SQLITE_DIALECT } from '../../platform/database/sql-dialects.ts';
import { figuresOf, UNMEASURED } from './node-figures.ts';

let market: TestMarket;

beforeEach(async () => {
  market = await createTestMarket();
});
afterEach(() => market.close());

const joinedBy = (...links: string[]): GpuTopology => ({
  gpus: links.map((_, row) => ({
    uuid: `GPU-${row}`,
    numa_node: 0,
    cpus: null,
    links: links.map((link, column) => (row === column ? 'X' : link)),
  })),
});

it.each([
  ['every pair', joinedBy('NV18', 'NV18'), 1],
  ['no pair', joinedBy('SYS', 'SYS'), 0],
  ['no pair, because there is a single card', joinedBy('X'), 0],
  ['an unknown number of pairs', null, null],
] as const)('computes the figure nvlink if NVLink connects %s', (_, topology, expected) => {
  const inventory = testInventory('e');
  const gpu = { ...inventory.gpu, topology };
  expect(figuresOf({ ...inventory, gpu }).nvlink).toBe(expected);
});

it('stores the memory of the card with the least memory', () => {
  const inventory = testInventory('e');
  const devices = inventory.gpu.devices.map((device, index) => ({
    ...device,
    memory_total_mib: 1_000 * (index + 1),
  }));
  const gpu = { ...inventory.gpu, devices };
  expect(figuresOf({ ...inventory, gpu }).gpu_memory_mib).toBe(1_000);
});

it('computes in the migration the same figures as the next verdict would', async () => {
  const node = await market.verifiedNode();
  const never = await market.addNode();
  const { db } = market.ports;
  const figures = async (id: string) =>
    db.selectFrom('executors').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  const measured = await figures(node.id);
  expect(measured).toMatchObject(figuresOf(testInventory(node.id)));
  expect(measured.cpu_cores).toBe(32);

  await db.updateTable('executors').set(UNMEASURED).execute();
  const words = isPostgres(db) ? POSTGRES_DIALECT : SQLITE_DIALECT;
  const [update] = marketFigures(words).filter((statement) => statement.startsWith('update'));
  await db.executeQuery({ ...db.selectFrom('meta').selectAll().compile(), sql: update ?? '' });
  expect({ ...(await figures(node.id)), revision: 0 }).toEqual({ ...measured, revision: 0 });
  expect(await figures(never.id)).toMatchObject(UNMEASURED);
});
