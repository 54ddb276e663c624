/** Pods on the real engine: launch, reboot, change, exits and two agents on one engine. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PodView } from '#shared/api/agent/pod.ts';
import { orphansOf, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createRealPods } from '../../test/fakes/scenes/real-pods.ts';

let scene: ReturnType<typeof createRealPods>;
beforeEach(() => {
  scene = createRealPods();
});
afterEach(() => scene.close());

it('launches a pod that answers on its port, ignores a repeated request, and removes everything', async () => {
  const host = await scene.newHost();
  const agent = scene.startAgent(host);
  const pod = await scene.launch(agent, { internal_ports: [8000, 22] });
  expect(pod.desired).toBe('running');
  expect(await scene.pageOf(pod)).toContain('This pod is running.');
  expect(Object.keys(pod.ports)).toEqual(['22', '8000']);

  const spec = podSpec({ internal_ports: [8000, 22] });
  expect(await scene.send(agent, 'PUT', `/v1/pods/${pod.id}`, spec)).toEqual({
    status: 200,
    body: pod,
  });
  const containers = await scene.engine.listContainers(scene.ownerOf(host.executorId));
  expect(containers.map(({ id }) => id)).toEqual([pod.container_id]);

  await scene.send(agent, 'DELETE', `/v1/pods/${pod.id}`);
  await scene.podIn(agent, pod.id, 'removed');
  expect(await scene.engine.listContainers(scene.ownerOf(host.executorId))).toEqual([]);
  expect(await scene.engine.listNetworks(scene.ownerOf(host.executorId))).toEqual([]);
  expect(agent.core.portLeases.portsOf(pod.id)).toEqual([]);
  expect((await scene.send(agent, 'DELETE', `/v1/pods/${pod.id}`)).body).toMatchObject({
    phase: 'removed',
  });
});

it('finds its pod again after a restart of the agent', async () => {
  const host = await scene.newHost();
  const first = scene.startAgent(host);
  const pod = await scene.launch(first);
  await scene.stopAgent(first);
  expect(await scene.pageOf(pod)).toContain('running');

  const second = scene.startAgent(host);
  await second.core.reconcile.runOnce();
  const found = await scene.podIn(second, pod.id, 'running');
  expect(found).toMatchObject({
    container_id: pod.container_id,
    ports: pod.ports,
    restart_count: 0,
  });
});

it('reboots the same container with the same ports, once per request number', async () => {
  const agent = scene.startAgent(await scene.newHost());
  const pod = await scene.launch(agent);
  const before = await scene.engine.inspectContainer(pod.container_id ?? '');
  const reboot = { reboot: 1 };
  await scene.send(agent, 'POST', `/v1/pods/${pod.id}/reboot`, reboot);
  const after = await eventually('the reboot', async () => {
    const view = await scene.podIn(agent, pod.id, 'running');
    return view.reboots_done === 1 && view;
  });
  expect(after).toMatchObject({
    container_id: pod.container_id,
    ports: pod.ports,
    last_exit: null,
  });
  const rebooted = await scene.engine.inspectContainer(pod.container_id ?? '');
  expect(rebooted?.startedMs).toBeGreaterThan(before?.startedMs ?? Infinity);
  expect(await scene.pageOf(after)).toContain('running');

  await scene.send(agent, 'POST', `/v1/pods/${pod.id}/reboot`, reboot);
  expect(await scene.engine.inspectContainer(pod.container_id ?? '')).toEqual(rebooted);
});

it('replaces the container by a new generation on the same port', async () => {
  const host = await scene.newHost();
  const agent = scene.startAgent(host);
  const pod = await scene.launch(agent);
  const next = podSpec({ generation: 2, environment: { COLOUR: 'green' } });
  expect((await scene.send(agent, 'PUT', `/v1/pods/${pod.id}`, next)).status).toBe(200);
  const replaced = await eventually('the change', async () => {
    const view = await scene.podIn(agent, pod.id, 'running');
    return view.change === null && view;
  });
  expect(replaced).toMatchObject({ generation: 2, observed_generation: 2, ports: pod.ports });
  expect(replaced.container_id).not.toBe(pod.container_id);
  expect(await scene.pageOf(replaced)).toContain('running');
  await eventually('the end of the old container', async () => {
    const containers = await scene.engine.listContainers(scene.ownerOf(host.executorId));
    return containers.length === 1 && containers[0]?.id === replaced.container_id;
  });
});

it('touches only its own objects if two agents share an engine', async () => {
  const [one, two] = [await scene.newHost(), await scene.newHost()];
  const [first, second] = [scene.startAgent(one), scene.startAgent(two)];
  const pod = await scene.launch(first);
  const other = await scene.launch(second);
  await second.core.reconcile.runOnce();
  expect(await orphansOf(second)).toBe(0);
  expect((await scene.send(second, 'DELETE', `/v1/pods/${pod.id}`)).status).toBe(404);
  await scene.send(second, 'DELETE', `/v1/pods/${other.id}`);
  await scene.podIn(second, other.id, 'removed');
  expect(await scene.pageOf(pod)).toContain('running');

  // The second agent gets the same pod id, but the container name belongs to the first.
  await scene.send(second, 'PUT', `/v1/pods/${pod.id}`, podSpec());
  const refused = await scene.podIn(second, pod.id, 'quarantined');
  expect(refused.reason).toBe('NameTaken');
  await scene.send(second, 'DELETE', `/v1/pods/${pod.id}`);
  await scene.podIn(second, pod.id, 'removed');
  expect(await scene.engine.inspectContainer(pod.container_id ?? '')).toMatchObject({
    status: 'running',
  });
  expect(await scene.pageOf(pod)).toContain('running');
});

it('restarts a pod that exits, and reports the exit', async () => {
  const agent = scene.startAgent(await scene.newHost());
  const pod = await scene.launch(agent, { command: ['sh', '-c', 'sleep 0.2; exit 3'] });
  const view = await eventually('the first restart', async () => {
    const { body } = await scene.send(agent, 'GET', `/v1/pods/${pod.id}`);
    return body.restart_count > 0 && PodView.parse(body);
  });
  expect(view.last_exit).toMatchObject({
    exit_code: 3,
    oom_killed: false,
    reason: 'ExitedNonZero',
  });
  expect(view.container_id).toBe(pod.container_id);
});

it('distinguishes an out-of-memory kill from a failure', async () => {
  const agent = scene.startAgent(await scene.newHost());
  const limits = { cpu_cores: 1, memory_bytes: 2 ** 25, shm_bytes: 2 ** 20, pids: 64 };
  const pod = await scene.launch(agent, {
    command: ['sh', '-c', 'sleep 0.2; tail /dev/zero'],
    limits,
  });
  const exit = await eventually('the end', async () => {
    const { body } = await scene.send(agent, 'GET', `/v1/pods/${pod.id}`);
    return PodView.parse(body).last_exit;
  });
  expect(exit).toMatchObject({ oom_killed: true, reason: 'OOMKilled' });
});
