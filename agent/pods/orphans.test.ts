/** Objects whose row is missing or corrupt are reported, left unchanged, and removed on DELETE. */
import { beforeEach, expect, it } from 'vitest';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, fakeGpus, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine, type FakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import type { Agent } from '../app.ts';
import { LABELS } from '../containers/engine/engine.ts';
import { volumeName } from '../containers/volumes/pod-volumes.ts';
import { openDatabase } from '../database/database.ts';

const IMAGE = 'registry.example/one:1';
const ID = '00000000-0000-4000-8000-000000000001';
const ID_2 = '00000002-0000-4000-8000-000000000002';
const GPU = 'GPU-00000000-0000-4000-8000-000000000000';
const EXECUTOR = '00000000-0000-4000-8000-00000000000e';
const GRACE_MS = 300_000;

let clock: ManualClock;
let engine: FakeEngine;

beforeEach(() => {
  clock = createManualClock();
  engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
});

function start(database = openDatabase(':memory:')): Agent {
  const gpus = fakeGpus([GPU]);
  const agent = createTestAgent({ engine, clock, executorId: EXECUTOR, database, gpus });
  agent.start();
  return agent;
}

async function settle(ms = 0): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await clock.advance(0);
  await clock.advance(ms);
  for (let turn = 0; turn < 30; turn += 1) await clock.advance(0);
}

const spec = (change = {}) => PodSpec.parse(podSpec({ image: { reference: IMAGE }, ...change }));

async function launch(agent: Agent, id: string, change = {}): Promise<void> {
  await agent.pods.put(id, spec(change));
  await settle();
  expect(agent.pods.get(id).phase).toBe('running');
}

async function stop(agent: Agent): Promise<void> {
  const stopped = agent.stop();
  await settle(1_000);
  await stopped;
}

it('reports objects of a lost store as orphans after the grace period, and does not change them', async () => {
  const first = start();
  await launch(first, ID, { volumes: ['/data'] });
  await stop(first);

  const second = start();
  await settle(10_000);
  expect(second.core.orphans.list()).toEqual([]);
  await settle(GRACE_MS);
  const [container, network] = [...engine.containers.values(), ...engine.networks.values()];
  expect(second.core.orphans.list()).toMatchObject([
    { kind: 'container', id: container?.id, pod_id: ID },
    { kind: 'network', id: network?.id, pod_id: ID },
    { kind: 'volume', id: volumeName(ID, '/data'), pod_id: ID },
  ]);
  const readiness = await second.server.inject('/readyz');
  expect(readiness.statusCode).toBe(200);
  expect(readiness.json().components.pods).toEqual({
    ok: false,
    message: '0 corrupt rows, 3 objects in the engine without a pod',
  });
  const metrics = (await second.server.inject('/metrics')).body;
  expect(metrics).toContain('podwright_agent_orphans{kind="container"} 1');
  await settle(2 * GRACE_MS);
  expect([...engine.containers.values()]).toMatchObject([{ status: 'running' }]);
  expect(engine.volumes.size).toBe(1);
});

it.each(['probe', 'doctor'])('ignores a %s container', async (kind) => {
  const agent = start();
  await launch(agent, ID);
  const [pod] = engine.containers.values();
  if (pod === undefined) throw new Error('no container');
  const labels = { ...pod.labels, [LABELS.kind]: kind, [LABELS.pod]: ID_2 };
  await engine.createContainer({ ...pod.spec, name: kind, labels });
  await settle(3 * GRACE_MS);
  expect(engine.containers.size).toBe(2);
  expect(agent.core.orphans.list()).toEqual([]);
});

it('removes the objects of an unknown pod on DELETE, even if the agent is killed during the removal', async () => {
  const first = start();
  await launch(first, ID, { volumes: ['/data'] });
  await stop(first);

  const database = openDatabase(':memory:');
  const second = start(database);
  engine.setAway(true);
  await expect(second.pods.remove(ID)).rejects.toMatchObject({ code: 'upstream_unavailable' });
  engine.setAway(false);
  await expect(second.pods.remove(ID_2)).rejects.toMatchObject({ code: 'pod_not_found' });
  engine.hook = (_, method) =>
    method === 'stopContainer' ? new Promise(() => undefined) : Promise.resolve();
  expect(await second.pods.remove(ID)).toMatchObject({ desired: 'removed', phase: 'removing' });
  await settle();
  void second.stop();

  engine = engine.reconnect();
  const third = start(database);
  await settle(20_000);
  expect(third.pods.get(ID).phase).toBe('removed');
  expect([engine.containers.size, engine.networks.size, engine.volumes.size]).toEqual([0, 0, 0]);
});

it('starts with a corrupt row, leaves its pod and leases unchanged, and removes it on DELETE', async () => {
  const database = openDatabase(':memory:');
  const first = start(database);
  await launch(first, ID, { gpu_uuids: [GPU] });
  await launch(first, ID_2);
  await stop(first);
  database.exec(`UPDATE pods SET spec_json = '{"generation":' WHERE id = '${ID}'`);

  const second = start(database);
  await settle(GRACE_MS + 10_000);
  expect(second.pods.list()).toMatchObject([{ id: ID_2, phase: 'running' }]);
  expect(() => second.pods.get(ID)).toThrow('corrupt');
  await expect(second.pods.put(ID, spec())).rejects.toThrow('corrupt');
  expect(second.core.orphans.list().map(({ pod_id }) => pod_id)).toEqual([ID, ID]);
  const other = second.pods.put(systemRandom.uuid(), spec({ gpu_uuids: [GPU] }));
  await expect(other).rejects.toMatchObject({ code: 'gpu_unavailable' });

  // The exit of a container must not start a worker for a corrupt row.
  for (const { id, labels } of [...engine.containers.values()]) {
    if (labels['io.podwright.pod'] === ID) engine.exit(id, 1);
  }
  await settle(20_000);
  expect(engine.containers.size).toBe(2);

  await second.pods.remove(ID);
  await settle(20_000);
  expect(second.pods.get(ID).phase).toBe('removed');
  expect(engine.containers.size).toBe(1);
  expect(second.core.gpuLeases.holderOf(GPU)).toBeNull();
});

it('removes a network and a volume that were created after their pod was removed', async () => {
  const agent = start();
  await launch(agent, ID, { volumes: ['/data'] });
  const [volume] = [...engine.volumes.values()];
  const [network] = [...engine.networks.values()];
  await agent.pods.remove(ID);
  await settle();
  expect(engine.networks.size).toBe(0);
  await engine.ensureNetwork(
    network?.name ?? '',
    network?.labels ?? {},
    network?.place ?? { subnet: '', bridgeName: '' },
  );
  await engine.createVolume(volume?.name ?? '', volume?.labels ?? {});
  await settle(2 * GRACE_MS + 10_000);
  expect([engine.networks.size, engine.volumes.size]).toEqual([0, 0]);
});
