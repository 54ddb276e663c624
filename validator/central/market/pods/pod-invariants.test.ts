import { afterEach, beforeEach, expect, it } from 'vitest';
import { onPostgres } from '../../../../test/fakes/scenes/central-database.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { openHolds } from '../../../../test/fakes/scenes/wallet.ts';

const STEPS = 120;
/** Seeds of the runs: fewer on PostgreSQL, where the runs take four times as long and have the same results. */
const SEEDS = onPostgres() ? [1] : [1, 2, 3];

let market: TestMarket;
let nodes: AddedNode[];
let accounts: TestAccount[];

beforeEach(async () => {
  market = await createTestMarket();
  nodes = [
    await market.verifiedNode({ gpus: 4, minimum: 1, price: 1.2 }),
    await market.verifiedNode({ gpus: 2, minimum: 1, price: 1.2 }),
  ];
  accounts = [await market.renter(), await market.renter()];
});
afterEach(() => market.close());

/** Linear congruential generator: the same seed repeats the same steps. */
function createDice(seed: number) {
  let state = seed;
  return (sides: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * sides);
  };
}

async function assertInvariants(): Promise<void> {
  const { db } = market.ports;
  const pods = await db.selectFrom('pods').selectAll().execute();
  const slots = await db.selectFrom('gpu_slots').selectAll().execute();
  const holds = await openHolds(db);
  const byId = new Map(pods.map((pod) => [pod.id, pod]));
  for (const slot of slots) {
    const holder = slot.pod_id === null ? null : byId.get(slot.pod_id);
    expect(holder, 'a slot belongs to an existing pod').not.toBeUndefined();
    if (holder !== null) {
      expect(holder?.ended_at, 'an ended pod holds no GPU').toBeNull();
      expect(holder?.executor_id).toBe(slot.executor_id);
    }
  }
  for (const pod of pods) {
    const held = slots.filter((slot) => slot.pod_id === pod.id);
    const gave = ['deleted', 'creation_failed', 'deleting'].includes(pod.state);
    const isSettled = ['running', 'reboot_failed', 'failed', 'unknown'].includes(pod.state);
    if (isSettled) expect(pod.previous_json, 'every change ends').toBeNull();
    const { generation } = JSON.parse(pod.spec_json);
    expect(generation, 'row and spec agree on the generation').toBe(pod.generation);
    if (!gave) expect(held, `a live pod has its GPUs (${pod.state})`).toHaveLength(pod.gpu_count);
    expect(pod.hold_id, 'every pod had a hold').not.toBeNull();
    // If the pod has run, its first settlement has closed the hold.
    const isHeld = holds.has(String(pod.hold_id));
    if (gave) expect(isHeld, 'a pod that is being removed has no open hold').toBe(false);
    else if (pod.first_running_at === null)
      expect(isHeld, 'a pod that never ran has an open hold').toBe(true);
  }
  for (const account of accounts) {
    const me = (await market.call('GET', '/users/me', { headers: account.key })).body;
    expect(me.available).toBeGreaterThanOrEqual(0);
  }
}

/**
 * Each GPU belongs to at most one pod on its host, including pods that are being removed. A failed creation releases
 * its GPU at once, because the agent itself refuses the GPU until it is free.
 */
async function assertHosts(): Promise<void> {
  const failures = await market.ports.db
    .selectFrom('events')
    .select('pod_id')
    .where('sub_event_type', '=', 'pod-create.failed')
    .execute();
  const failed = new Set(failures.map((event) => event.pod_id));
  for (const { id } of nodes) {
    const views = [...market.agents.host(id).pods.values()];
    const uuids = views.filter((view) => !failed.has(view.id)).flatMap((view) => view.gpu_uuids);
    expect(new Set(uuids).size, 'a GPU belongs to one pod').toBe(uuids.length);
  }
}

/** Completes removals on a host. */
function finishRemovals(nodeId: string): void {
  const { pods } = market.agents.host(nodeId);
  for (const [id, view] of pods) if (view.phase === 'removing') pods.delete(id);
}

/** Fails the pending changes on a host and restarts the former containers. */
function endChanges(nodeId: string): void {
  const host = market.agents.host(nodeId);
  for (const { id, generation, phase } of [...host.pods.values()]) {
    if (generation === 1 || phase === 'removing') continue;
    const change = { generation, stage: 'failed', reason: 'StartFailed', message: '' } as const;
    host.change(id, { change, observed_generation: generation - 1, phase: 'running' });
  }
}

it.each(SEEDS)('never assigns a GPU twice and never loses a hold, with seed %i', async (seed) => {
  const roll = createDice(seed);
  const pick = <T>(items: readonly T[]): T => {
    const item = items[roll(items.length)];
    if (item === undefined) throw new Error('the list of choices is empty');
    return item;
  };
  for (let step = 0; step < STEPS; step += 1) {
    const account = pick(accounts);
    const node = pick(nodes);
    const host = market.agents.host(node.id);
    const pods = (await market.call('GET', '/pods', { headers: account.key })).body;
    switch (roll(13)) {
      case 0:
      case 1:
      case 2:
        await Promise.all(
          accounts.map((renter) => market.rent(renter, node.id, { gpu_count: 1 + roll(2) })),
        );
        break;
      case 3:
      case 4:
        if (pods.length > 0) {
          const path = `/pods/${pick<{ id: string }>(pods).id}`;
          await market.call('DELETE', path, { headers: account.key });
        }
        break;
      case 5:
        host.up = !host.up;
        break;
      case 6:
        host.losesAnswers = !host.losesAnswers;
        break;
      case 7:
        host.arrives = pick(['running', 'failed', 'pulling'] as const);
        break;
      case 8:
        host.removesAtOnce = !host.removesAtOnce;
        break;
      case 9:
        finishRemovals(node.id);
        break;
      case 10:
      case 11:
        if (pods.length > 0) {
          const path = `/pods/${pick<{ id: string }>(pods).id}`;
          const body = { environment: { STEP: String(step) } };
          await market.call('PUT', path, { headers: account.key, body });
          if (roll(2) === 0) endChanges(node.id);
        }
        break;
      default:
        host.pods.clear();
    }
    await market.clock.advance(roll(15_000));
    await market.sync();
    await assertInvariants();
    await assertHosts();
  }

  for (const { id } of nodes) {
    const healthy = { up: true, losesAnswers: false, arrives: 'running', removesAtOnce: true };
    Object.assign(market.agents.host(id), healthy);
    finishRemovals(id);
  }
  for (const account of accounts) {
    for (const pod of (await market.call('GET', '/pods', { headers: account.key })).body) {
      await market.call('DELETE', `/pods/${pod.id}`, { headers: account.key });
    }
  }
  for (let pass = 0; pass < 4; pass += 1) {
    await market.clock.advance(180_000);
    await market.sync();
  }
  const slots = await market.ports.db.selectFrom('gpu_slots').select('pod_id').execute();
  expect(slots.filter((slot) => slot.pod_id !== null)).toEqual([]);
  for (const { id } of nodes) expect(market.agents.host(id).pods.size).toBe(0);
});
