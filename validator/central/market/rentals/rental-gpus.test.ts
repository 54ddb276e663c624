import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AddedNode } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { testInventory } from '../../../../test/fixtures/host-inventory.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let scene: PodScene;
let market: PodScene['market'];
let node: PodScene['node'];
let account: PodScene['account'];
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, node, account } = scene);
});
afterEach(() => scene.close());

describe('a rental with a GPU count', () => {
  type Setup = { minimum: number | null; splits: boolean; rented: number };
  const whole: Setup = { minimum: null, splits: true, rented: 0 };
  const split: Setup = { minimum: 2, splits: true, rented: 0 };

  /** Adds a node with four GPUs. */
  async function fourGpus({ minimum, splits, rented }: Setup): Promise<AddedNode> {
    const { db } = market.ports;
    const four = await market.addNode({ gpus: 4 });
    const inventory = testInventory(four.id, { gpus: 4, collectedMs: market.clock.now() });
    const docker = { ...inventory.docker, gpu_runtime: splits };
    await market.report(four, { inventory: { ...inventory, docker, simulated: false } });
    await db
      .updateTable('gpu_slots')
      .set({ pod_id: NOWHERE })
      .where('executor_id', '=', four.id)
      .where('idx', '<', rented)
      .execute();
    const change = { min_gpu_count: minimum, slots_free: 4 - rented };
    await db.updateTable('executors').set(change).where('id', '=', four.id).execute();
    return four;
  }

  it.each<[string, unknown, Setup, number, string | null]>([
    ['that is a string', 'two', whole, 422, 'validation_error'],
    ['that is a fraction', 1.5, whole, 422, 'validation_error'],
    ['of zero', 0, whole, 422, 'validation_error'],
    ['that is absent rents all GPUs', null, whole, 200, null],
    [
      'that is absent, while some GPUs are rented',
      null,
      { ...split, rented: 2 },
      400,
      'gpu_count_invalid',
    ],
    ['above the node’s number of GPUs', 5, whole, 400, 'gpu_count_invalid'],
    [
      'above the node’s number of GPUs, while all are rented',
      5,
      { ...whole, rented: 4 },
      400,
      'gpu_count_invalid',
    ],
    ['of all GPUs, while all are rented', 4, { ...whole, rented: 4 }, 400, 'node_unavailable'],
    [
      'of a part of a node that cannot be split',
      2,
      { ...split, splits: false },
      400,
      'gpu_split_not_allowed',
    ],
    ['of a part of a node without a minimum', 2, whole, 400, 'gpu_count_invalid'],
    [
      'of a part of a node that cannot be split and has no minimum',
      2,
      { ...whole, splits: false },
      400,
      'gpu_split_not_allowed',
    ],
    ['below the minimum', 1, split, 400, 'gpu_count_invalid'],
    ['above the number of free GPUs', 3, { ...split, rented: 2 }, 400, 'gpu_count_invalid'],
    ['that leaves fewer free GPUs than the minimum', 3, split, 200, null],
    ['of all GPUs of a node that cannot be split', 4, { ...whole, splits: false }, 200, null],
  ])('%s', async (_, gpu_count, setup, status, code) => {
    const four = await fourGpus(setup);
    const answer = await market.rent(account, four.id, { gpu_count });
    expect([answer.status, answer.body.error?.code ?? null]).toEqual([status, code]);
    if (status === 200) expect(answer.body.gpu_count).toBe(String(gpu_count ?? 4));
    expect(await scene.holds()).toHaveLength(status === 200 ? 1 : 0);
  });
});

it('assigns GPUs connected by NVLink, and MIG devices like whole cards', async () => {
  const { db } = market.ports;
  const other = await market.addNode({ gpus: 4, minimum: 1 });
  const inventory = testInventory(other.id, { gpus: 4, collectedMs: market.clock.now() });
  const uuids = inventory.gpu.devices.map(({ uuid }) => uuid);
  // NVLink connects card 1 with card 3, and card 2 with card 4.
  const link = (a: number, b: number) => (a === b ? 'X' : a % 2 === b % 2 ? 'NV4' : 'SYS');
  const gpus = uuids.map((uuid, a) => ({
    uuid,
    numa_node: 0,
    cpus: null,
    links: uuids.map((_, b) => link(a, b)),
  }));
  const devices = inventory.gpu.devices.map((device, index) =>
    index === 1 ? { ...device, cordoned: { reason: 'Xid: Xid 79', since_ms: 1 } } : device,
  );
  const gpu = { ...inventory.gpu, devices, topology: { gpus } };
  await market.report(other, { inventory: { ...inventory, gpu } });
  const rented = await market.rent(account, other.id, { gpu_count: 2 });
  expect(rented.status).toBe(200);
  const slots = await db
    .selectFrom('gpu_slots')
    .selectAll()
    .where('executor_id', '=', other.id)
    .orderBy('idx')
    .execute();
  // The excluded second card has no slot. A pair connected by NVLink is preferred to the first two cards.
  expect(slots.map((slot) => [slot.gpu_uuid, slot.pod_id !== null])).toEqual([
    [uuids[0], true],
    [uuids[2], true],
    [uuids[3], false],
  ]);
});

it('assigns the last GPU to one of 50 concurrent rentals', async () => {
  const renters = await Promise.all(Array.from({ length: 5 }, () => market.renter()));
  await market.rent(account, node.id, { gpu_count: 1 });
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      market.rent(renters[index % 5] ?? account, node.id, { gpu_count: 1 }),
    ),
  );
  const refused = answers.filter((answer) => answer.status !== 200);
  expect(refused).toHaveLength(49);
  // The pods of both GPUs are still being launched.
  for (const { body } of refused) expect(body.error.code).toBe('node_rent_in_progress');
  const slots = await market.ports.db.selectFrom('gpu_slots').select('pod_id').execute();
  expect(new Set(slots.map((slot) => slot.pod_id)).size).toBe(2);
});
