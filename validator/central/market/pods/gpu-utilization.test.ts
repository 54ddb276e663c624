import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createAgentCache, MAX_CACHED } from '../executors/agent-cache.ts';
import { FAILED_LISTED_MS } from './pod-access.ts';

let market: TestMarket;
beforeEach(async () => {
  market = await createTestMarket();
});
afterEach(() => market.close());

/** Rents a pod. If `isMeasured`, the agent has measurements of the pod. */
async function rented(isMeasured = true) {
  const node = await market.verifiedNode({ gpus: 1 });
  const { id } = (await market.rent(await market.renter(), node.id)).body;
  const host = market.agents.host(node.id);
  const [gpu] = host.inventory.gpu.devices;
  await market.sync();
  if (isMeasured) {
    host.podMetrics.set(id, {
      age_ms: 2_000,
      simulated: true,
      interval_seconds: 10,
      idle_ms: null,
      cpu: { used_cores: 1, limit_cores: 2 },
      memory: { used_bytes: 1, limit_bytes: 2 },
      gpus: gpu === undefined ? [] : [{ ...gpu, utilization_percent: 60, processes: 1 }],
      history: [
        { age_ms: 12_000, gpu_percent: 40, gpu_memory_percent: 5 },
        { age_ms: 2_000, gpu_percent: 60, gpu_memory_percent: null },
      ],
    });
  }
  // Sent without a credential, because the route requires none.
  const ask = () => market.call('GET', `/pods/${id}/gpu-utilization`);
  return { id, host, ask, uuid: gpu?.uuid };
}

it("shows a pod's GPUs without a credential, with times of the central API", async () => {
  const { id, host, ask, uuid } = await rented();
  const ago = (ms: number) => naiveUtc(market.clock.now() - ms);
  const { status, body } = await ask();
  expect(status).toBe(200);
  expect(body).toMatchObject({
    pod_id: id,
    timestamp: ago(2_000),
    stale: false,
    simulated: true,
    interval_seconds: 10,
    gpus: [{ uuid, gpu_utilization: 60, memory_utilization: 0, processes: 1, graphics_speed: 210 }],
    history: [
      { timestamp: ago(12_000), gpu_utilization: 40, memory_utilization: 5 },
      { timestamp: ago(2_000), gpu_utilization: 60, memory_utilization: 0 },
    ],
  });
  await Promise.all([ask(), ask(), ask()]);
  expect(host.metricsAsked).toBe(1);
});

it('returns the last response, marked as stale, while the node does not answer', async () => {
  const { host, ask } = await rented();
  const known = (await ask()).body;
  host.up = false;
  await market.clock.advance(5_000);
  expect((await ask()).body).toEqual({ ...known, stale: true });
  host.up = true;
  await market.clock.advance(5_000);
  expect((await ask()).body).toMatchObject({ stale: false });
  const metrics = [...host.podMetrics.entries()].map(
    ([id, found]) => [id, { ...found, age_ms: 60_001 }] as const,
  );
  for (const [id, old] of metrics) host.podMetrics.set(id, old);
  await market.clock.advance(5_000);
  expect((await ask()).body).toMatchObject({ stale: true, gpus: [{}] });
});

it('returns no GPUs before the first sample, and 502 if the node never answered', async () => {
  const silent = await rented();
  silent.host.up = false;
  const refused = await silent.ask();
  expect([refused.status, refused.body.error.code]).toEqual([502, 'upstream_unavailable']);
  const fresh = await rented(false);
  expect((await fresh.ask()).body).toMatchObject({ stale: false, gpus: [], history: [] });
  fresh.host.pods.clear();
  await market.clock.advance(5_000);
  expect((await fresh.ask()).body).toMatchObject({ stale: false, gpus: [], history: [] });
});

it('reports simulated GPUs for a pod that its node does not have yet', async () => {
  const { id, ask, host } = await rented(false);
  host.pods.clear();
  const nodes = market.ports.db.updateTable('executors');
  await nodes.set({ simulated: 1 }).execute();
  expect((await ask()).body).toMatchObject({ pod_id: id, gpus: [], simulated: true });
  await nodes.set({ simulated: 0 }).execute();
  expect((await ask()).body).toMatchObject({ pod_id: id, gpus: [], simulated: false });
});

it('returns 404 for a missing or ended pod, and 422 for a malformed id', async () => {
  const { id, ask, host } = await rented();
  await ask();
  await market.ports.db
    .updateTable('pods')
    .set({ ended_at: market.clock.now() })
    .where('id', '=', id)
    .execute();
  const strange = `/pods/00000000-0000-4000-8000-000000000000/gpu-utilization`;
  for (const answer of [await ask(), await market.call('GET', strange)]) {
    expect([answer.status, answer.body.error.code]).toEqual([404, 'pod_not_found']);
  }
  expect((await market.call('GET', '/pods/x/gpu-utilization')).status).toBe(422);
  expect(host.metricsAsked).toBe(1);
});

it('returns 404 for a failed creation after 180 s', async () => {
  const { ask, id, host } = await rented();
  const failed = { state: 'creation_failed', delete_requested_at: market.clock.now() };
  await market.ports.db.updateTable('pods').set(failed).where('id', '=', id).execute();
  expect((await ask()).status).toBe(200);
  await market.clock.advance(FAILED_LISTED_MS);
  expect((await ask()).status).toBe(404);
  expect(host.metricsAsked).toBe(1);
});

it('waits at most five seconds for an agent, and evicts the least recently used response from the cache', async () => {
  const { clock } = market;
  const look = createAgentCache<number>(clock);
  const slow = Promise.withResolvers<number>();
  const first = look('slow', () => slow.promise);
  await clock.advance(5_000);
  expect(await first).toEqual({ last: null, isLive: false });
  slow.resolve(1);
  await slow.promise;
  const failing = () => Promise.reject(new Error('silent'));
  expect(await look('slow', failing)).toMatchObject({ last: { value: 1 }, isLive: false });
  for (let n = 0; n < MAX_CACHED; n += 1) await look(`other ${n}`, async () => n);
  await clock.advance(5_000);
  expect(await look('slow', failing)).toMatchObject({ last: null });
  expect(await look('other 1', failing)).toMatchObject({ last: { value: 1 } });
});
