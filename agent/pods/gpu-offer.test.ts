/** GPUs that a host offers, as the agent's HTTP routes report them. */
import { expect, it } from 'vitest';
import { Inventory } from '#shared/api/agent/inventory.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createGpuSource, type GpuShareRule } from '../gpu/gpu-lease.ts';
import { createSimulatedDriver, parseSimulatedGpus } from '../gpu/simulated-gpus.ts';

/** An agent with simulated GPUs in the format of `AGENT_SIMULATED_GPUS`. */
function setUp(text: string, gpuShare: GpuShareRule = { split: 'any', minimum: 0 }) {
  const clock = createManualClock();
  const executorId = systemRandom.uuid();
  const gpuDriver = createSimulatedDriver(executorId, parseSimulatedGpus(text) ?? []);
  const gpus = createGpuSource(gpuDriver);
  const engine = createFakeEngine(clock);
  const agent = createTestAgent({ clock, engine, executorId, gpuDriver, gpus, gpuShare });
  const put = (gpu_uuids: string[], id: string = systemRandom.uuid()) =>
    agent.server.inject({
      method: 'PUT',
      url: `/v1/pods/${id}`,
      payload: podSpec({ gpu_uuids }),
    });
  const devices = async () =>
    Inventory.parse((await agent.server.inject('/v1/inventory')).json()).gpu.devices;
  return { clock, agent, put, devices };
}

it('offers and leases the MIG devices of a simulated card, never the card itself', async () => {
  const { clock, agent, put, devices } = setUp(
    'NVIDIA H100 80GB HBM3[3g.40gb+1g.10gb*2],NVIDIA L4',
  );
  const offered = await devices();
  expect(offered.map(({ name, index }) => `${index} ${name}`)).toEqual([
    '0 NVIDIA H100 80GB HBM3 MIG 3g.40gb',
    '0 NVIDIA H100 80GB HBM3 MIG 1g.10gb',
    '0 NVIDIA H100 80GB HBM3 MIG 1g.10gb',
    '1 NVIDIA L4',
  ]);
  const id = systemRandom.uuid();
  const [first, second] = offered;
  const answer = await put([first?.uuid ?? ''], id);
  expect(answer.json()).toMatchObject({ gpu_uuids: [first?.uuid], simulated: true });
  await clock.advance(2_000);
  expect((await devices())[0]).toMatchObject({ leased_by: id, lease_state: 'held' });
  expect((await devices())[1]).toMatchObject({ leased_by: null, lease_state: 'free' });
  expect((await put([first?.uuid ?? ''])).statusCode).toBe(409);
  expect((await put([second?.uuid ?? ''])).statusCode).toBe(200);
  expect((await put([first?.mig?.parent_uuid ?? ''])).json().error.code).toBe('gpu_unavailable');
  await agent.stop();
});

it.each<[string, GpuShareRule, number, string | null]>([
  [
    'part of a host that is offered only as a whole',
    { split: 'whole', minimum: 0 },
    1,
    'gpu_split_not_allowed',
  ],
  ['all GPUs of a host that is offered only as a whole', { split: 'whole', minimum: 0 }, 2, null],
  ['fewer GPUs than the minimum', { split: 'any', minimum: 2 }, 1, 'gpu_count_invalid'],
  ['exactly the minimum number of GPUs', { split: 'any', minimum: 2 }, 2, null],
])('accepts or rejects a request for %s', async (_, rule, count, code) => {
  const { agent, put, devices } = setUp('NVIDIA L4*2', rule);
  const uuids = (await devices()).map(({ uuid }) => uuid);
  const answer = await put(uuids.slice(0, count));
  expect(answer.json().error?.code ?? null).toBe(code);
  // A refused request leaves no pod.
  const pods = (await agent.server.inject('/v1/pods')).json().pods;
  expect(pods).toHaveLength(code === null ? 1 : 0);
  await agent.stop();
});
