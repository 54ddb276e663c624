import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MAX_AGE_MS, MAX_BYTES, MAX_FIGURE, MAX_WAIT_SECONDS } from '#shared/api/agent/bounds.ts';
import { type FinishedPull, NO_PROGRESS } from '#shared/api/agent/images.ts';
import type { HostMetrics } from '#shared/api/agent/metrics.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { findPullSpeed } from '../executors/pull-speed.store.ts';
import { findPod } from './pod.store.ts';
import { setRemovalDue } from './pod-removal.ts';

const UBUNTU = '5d0c8f3a-6d0e-4c59-9a3e-3f6f0b7c1a01';
const PULL: FinishedPull = {
  finished_ms: 2 ** 43,
  took_ms: 500,
  bytes: MAX_BYTES,
  image_bytes: MAX_BYTES,
  is_whole: true,
};

let market: TestMarket;
let account: TestAccount;
let node: AddedNode;
let other: AddedNode;
beforeEach(async () => {
  market = await createTestMarket();
  node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  other = await market.verifiedNode({ gpus: 2, minimum: 1 });
  account = await market.renter();
});
afterEach(() => market.close());

const get = (path: string) => market.call('GET', path, { headers: account.key });

async function rent(on: AddedNode): Promise<string> {
  const { status, body } = await market.rent(account, on.id, {
    template_id: UBUNTU,
    gpu_count: 1,
  });
  expect(status).toBe(200);
  return body.id;
}

/** Rents a pod on each node; the first node's agent then reports `view` for its pod. */
async function rentBoth(view: Partial<PodView>): Promise<{ id: string; otherId: string }> {
  const host = market.agents.host(node.id);
  host.arrives = 'pulling';
  const ids = { id: await rent(node), otherId: await rent(other) };
  await market.sync();
  host.change(ids.id, view);
  await market.clock.advance(10_000);
  await market.sync();
  return ids;
}

describe('the largest figures that an agent may send', () => {
  it('do not break the list of pods or rentals of nodes', async () => {
    const pull = { ...NO_PROGRESS, eta_seconds: MAX_WAIT_SECONDS, bytes_total: MAX_BYTES };
    const { id } = await rentBoth({ pull, last_pull: PULL });
    expect((await get(`/pods/${id}`)).body).toMatchObject({
      phase: 'pulling',
      estimated_ready_seconds: MAX_WAIT_SECONDS,
    });
    expect((await get('/pods')).body).toHaveLength(2);
    expect(await findPullSpeed(market.ports.db, node.id)).toMatchObject({ bytes_per_second: 1e12 });
    await rent(node);
    const estimate = `/executors/deployment-estimate?template_id=${UBUNTU}&executor_id=`;
    expect((await get(estimate + node.id)).body.estimated_seconds).toBeLessThan(200);
    // The size of an image is the same on every node.
    const elsewhere = (await get(estimate + other.id)).body.estimated_seconds;
    expect(elsewhere).toBeLessThanOrEqual(MAX_WAIT_SECONDS);
    expect((await get(`/executors/${node.id}/hardware-utilization`)).status).toBe(200);
  });

  it('are accepted as ages of measurements', async () => {
    const { id } = await rentBoth({});
    const host = market.agents.host(node.id);
    const { gpu, cpu, memory, disk } = host.inventory;
    const metrics: HostMetrics = {
      age_ms: MAX_AGE_MS,
      simulated: true,
      memory,
      disk,
      gpus: gpu.devices,
      gpu_error: null,
      cpu: { ...cpu, load_1m: MAX_FIGURE },
      network: { rx_bytes_per_second: MAX_FIGURE, tx_bytes_per_second: MAX_FIGURE },
    };
    host.metrics = metrics;
    host.podMetrics.set(id, {
      age_ms: MAX_AGE_MS,
      simulated: true,
      interval_seconds: 10,
      gpus: [],
      idle_ms: null,
      cpu: { used_cores: MAX_FIGURE, limit_cores: 1 },
      memory: { used_bytes: Number.MAX_SAFE_INTEGER, limit_bytes: 1 },
      history: [{ age_ms: MAX_AGE_MS, gpu_percent: null, gpu_memory_percent: null }],
    });
    const paths = [`/executors/${node.id}/hardware-utilization`, `/pods/${id}/gpu-utilization`];
    for (const path of paths) expect(await get(path)).toMatchObject({ body: { stale: true } });
    await market.clock.advance(10_000);
    host.metrics = { ...metrics, age_ms: MAX_AGE_MS + 1 };
    host.podMetrics.set(id, {
      age_ms: Number.MAX_SAFE_INTEGER,
      simulated: true,
      interval_seconds: 10,
      gpus: [],
      idle_ms: null,
      cpu: { used_cores: null, limit_cores: 1 },
      history: [],
      memory: { used_bytes: null, limit_bytes: 1 },
    });
    for (const path of paths) expect((await get(path)).status).toBe(200);
  });
});

describe('figures beyond these limits', () => {
  const beyond: [string, Partial<PodView>][] = [
    ['a remaining time', { pull: { ...NO_PROGRESS, eta_seconds: MAX_WAIT_SECONDS + 1 } }],
    ['a size', { last_pull: { ...PULL, bytes: MAX_BYTES + 1 } }],
    ['a finish time', { last_pull: { ...PULL, finished_ms: Number.MAX_SAFE_INTEGER } }],
    ['a generation', { generation: Number.MAX_SAFE_INTEGER }],
    ['a port', { ports: { 22: 65_536 } }],
  ];
  it.each(beyond)('make the answer of the agent invalid: %s', async (_, view) => {
    const { id, otherId } = await rentBoth({ ...view, phase: 'running' });
    expect((await get(`/pods/${otherId}`)).body).toMatchObject({ status: 'RUNNING' });
    expect((await get(`/pods/${id}`)).body).toMatchObject({ status: 'PENDING' });
    expect(await findPullSpeed(market.ports.db, node.id)).toBeUndefined();
  });

  it('are rejected in the report of a node', async () => {
    const { inventory } = market.agents.host(node.id);
    const [device] = inventory.gpu.devices;
    if (device === undefined) throw new Error('the fixture has GPUs');
    const strange = [
      { ...inventory, memory: { ...inventory.memory, total_kib: MAX_FIGURE + 1 } },
      { ...inventory, collected_ms: Number.MAX_SAFE_INTEGER },
      { ...inventory, gpu: { ...inventory.gpu, devices: [{ ...device, name: 'x'.repeat(201) }] } },
    ];
    for (const each of strange) {
      expect((await market.report(node, { inventory: each })).status).toBe(422);
    }
    expect((await market.report(node, { inventory })).status).toBe(200);
  });
});

it('syncs the other executors that are due if one pod row cannot be parsed', async () => {
  const { db } = market.ports;
  const poisoned = await rent(node);
  await market.sync();
  await db
    .updateTable('pods')
    .set((eb) => {
      const unsafe = eb(eb.lit(Number.MAX_SAFE_INTEGER), '+', eb.lit(2));
      return { removal_at: market.clock.now(), ready_expected_at: unsafe };
    })
    .where('id', '=', poisoned)
    .execute();
  await setRemovalDue(db, poisoned, market.clock.now());
  await expect(findPod(db, poisoned)).rejects.toThrow();
  const id = await rent(other);
  await market.clock.advance(10_000);
  await market.sync();
  expect((await get(`/pods/${id}`)).body).toMatchObject({ status: 'RUNNING' });
  // The removal is not lost: it begins once the row can be parsed.
  await db
    .updateTable('pods')
    .set({ ready_expected_at: null })
    .where('id', '=', poisoned)
    .execute();
  await market.clock.advance(10_000);
  await market.sync();
  expect((await get(`/pods/${poisoned}`)).status).toBe(404);
});

it('records the state of a pod even if the figures of its pull cannot be stored', async () => {
  const { db } = market.ports;
  const { id } = await rentBoth({});
  await db.schema.alterTable('pull_speeds').renameTo('elsewhere').execute();
  market.agents.host(node.id).change(id, { phase: 'running', last_pull: PULL });
  await market.sync();
  await db.schema.alterTable('elsewhere').renameTo('pull_speeds').execute();
  expect((await get(`/pods/${id}`)).body).toMatchObject({ status: 'RUNNING' });
  await market.clock.advance(10_000);
  await market.sync();
  expect(await findPullSpeed(db, node.id)).toMatchObject({ pulls: 1 });
});
