import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, orphansOf, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';
import type { Agent } from '../app.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { LABELS } from '../containers/engine/engine.ts';
import { openDatabase } from '../database/database.ts';
import { probePort } from '../leases/port.service.ts';
import { LAUNCH_LIMIT_MS } from './launch-limit.ts';

const PORTS_PER_AGENT = 10;
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const ownerOf = (executorId: string) => ({ [LABELS.executor]: executorId });

let home: string;
let executors: string[];
let running: Agent[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'podwright-'));
  executors = [];
  running = [];
});

afterEach(async () => {
  await Promise.all(running.map((agent) => agent.stop()));
  for (const executorId of executors) {
    const owner = ownerOf(executorId);
    for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
    for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
    for (const { name } of await engine.listVolumes(owner)) await engine.removeVolume(name);
  }
  rmSync(home, { recursive: true });
});

type Host = { executorId: string; database: string; portRange: { first: number; last: number } };

async function newHost(): Promise<Host> {
  const executorId = systemRandom.uuid();
  executors.push(executorId);
  const database = join(home, `${executorId}.sqlite`);
  return { executorId, database, portRange: await freePorts(PORTS_PER_AGENT) };
}

function startAgent({ executorId, database, portRange }: Host): Agent {
  const store = openDatabase(database);
  const host = { executorId, portRange, database: store, probePort };
  const agent = createTestAgent({ engine, clock: systemClock, ...host });
  agent.start();
  running.push(agent);
  return agent;
}

async function stopAgent(agent: Agent): Promise<void> {
  running = running.filter((other) => other !== agent);
  await agent.stop();
}

async function send(
  agent: Agent,
  method: 'PUT' | 'GET' | 'DELETE' | 'POST',
  url: string,
  body?: object,
) {
  const request = body === undefined ? { method, url } : { method, url, payload: body };
  const response = await agent.server.inject(request);
  return { status: response.statusCode, body: response.json() };
}

async function podIn(agent: Agent, id: string, phase: PodView['phase']): Promise<PodView> {
  return eventually(`${id} ${phase}`, async () => {
    const { body } = await send(agent, 'GET', `/v1/pods/${id}`);
    const view = PodView.parse(body);
    if (view.phase !== phase && view.phase === 'failed') throw new Error(view.message);
    return view.phase === phase && view;
  });
}

async function launch(agent: Agent, change = {}): Promise<PodView> {
  const id = systemRandom.uuid();
  const { status, body } = await send(agent, 'PUT', `/v1/pods/${id}`, podSpec(change));
  expect(body).toMatchObject({ id, desired: 'running' });
  expect(status).toBe(200);
  return podIn(agent, id, 'running');
}

async function pageOf(view: PodView): Promise<string> {
  const url = `http://127.0.0.1:${view.ports['8000']}/`;
  return eventually(`an answer of ${url}`, async () => {
    const response = await fetch(url).catch(() => null);
    return response?.ok === true && response.text();
  });
}

it('launches a pod that answers on its port, ignores a repeated request, and removes everything', async () => {
  const host = await newHost();
  const agent = startAgent(host);
  const pod = await launch(agent, { internal_ports: [8000, 22] });
  expect(await pageOf(pod)).toContain('This pod is running.');
  expect(Object.keys(pod.ports)).toEqual(['22', '8000']);

  const spec = podSpec({ internal_ports: [8000, 22] });
  expect(await send(agent, 'PUT', `/v1/pods/${pod.id}`, spec)).toEqual({ status: 200, body: pod });
  const containers = await engine.listContainers(ownerOf(host.executorId));
  expect(containers.map(({ id }) => id)).toEqual([pod.container_id]);

  await send(agent, 'DELETE', `/v1/pods/${pod.id}`);
  await podIn(agent, pod.id, 'removed');
  expect(await engine.listContainers(ownerOf(host.executorId))).toEqual([]);
  expect(await engine.listNetworks(ownerOf(host.executorId))).toEqual([]);
  expect(agent.core.portLeases.portsOf(pod.id)).toEqual([]);
  expect((await send(agent, 'DELETE', `/v1/pods/${pod.id}`)).body).toMatchObject({
    phase: 'removed',
  });
});

it('finds its pod again after a restart of the agent', async () => {
  const host = await newHost();
  const first = startAgent(host);
  const pod = await launch(first);
  await stopAgent(first);
  expect(await pageOf(pod)).toContain('running');

  const second = startAgent(host);
  await second.core.reconcile.runOnce();
  const found = await podIn(second, pod.id, 'running');
  expect(found).toMatchObject({
    container_id: pod.container_id,
    ports: pod.ports,
    restart_count: 0,
  });
});

it('restarts a pod that ended while the agent was not running', async () => {
  const host = await newHost();
  const first = startAgent(host);
  const pod = await launch(first);
  await stopAgent(first);
  await engine.stopContainer(pod.container_id ?? '', 5);

  const second = startAgent(host);
  const back = await eventually('the restart', async () => {
    const view = await podIn(second, pod.id, 'running');
    return view.restart_count === 1 && view;
  });
  expect(back).toMatchObject({ container_id: pod.container_id, last_exit: { exit_code: 0 } });
  expect(await pageOf(back)).toContain('running');
});

it('reboots the same container with the same ports, once per request number', async () => {
  const agent = startAgent(await newHost());
  const pod = await launch(agent);
  const before = await engine.inspectContainer(pod.container_id ?? '');
  const reboot = { reboot: 1 };
  await send(agent, 'POST', `/v1/pods/${pod.id}/reboot`, reboot);
  const after = await eventually('the reboot', async () => {
    const view = await podIn(agent, pod.id, 'running');
    return view.reboots_done === 1 && view;
  });
  expect(after).toMatchObject({
    container_id: pod.container_id,
    ports: pod.ports,
    last_exit: null,
  });
  const rebooted = await engine.inspectContainer(pod.container_id ?? '');
  expect(rebooted?.startedMs).toBeGreaterThan(before?.startedMs ?? Infinity);
  expect(await pageOf(after)).toContain('running');

  await send(agent, 'POST', `/v1/pods/${pod.id}/reboot`, reboot);
  expect(await engine.inspectContainer(pod.container_id ?? '')).toEqual(rebooted);
});

it('replaces the container by a new generation on the same port', async () => {
  const host = await newHost();
  const agent = startAgent(host);
  const pod = await launch(agent);
  const next = podSpec({ generation: 2, environment: { COLOUR: 'green' } });
  expect((await send(agent, 'PUT', `/v1/pods/${pod.id}`, next)).status).toBe(200);
  const replaced = await eventually('the change', async () => {
    const view = await podIn(agent, pod.id, 'running');
    return view.change === null && view;
  });
  expect(replaced).toMatchObject({ generation: 2, observed_generation: 2, ports: pod.ports });
  expect(replaced.container_id).not.toBe(pod.container_id);
  expect(await pageOf(replaced)).toContain('running');
  await eventually('the end of the old container', async () => {
    const containers = await engine.listContainers(ownerOf(host.executorId));
    return containers.length === 1 && containers[0]?.id === replaced.container_id;
  });
});

it('keeps the data of volumes across a change, copies the image’s files into new volumes, and reports their folders', async () => {
  const host = await newHost();
  const agent = startAgent(host);
  const pod = await launch(agent, { volumes: ['/www', '/data'] });
  expect(await pageOf(pod)).toContain('This pod is running.');
  const roots = await agent.core.dataRootsOf(pod.id);
  expect(roots.map(({ mountPath }) => mountPath)).toEqual(['/www', '/data']);
  const www = roots[0]?.hostPath ?? '';
  writeFileSync(join(www, 'index.html'), 'changed\n');

  const next = podSpec({ generation: 2, volumes: ['/www'], environment: { COLOUR: 'green' } });
  await send(agent, 'PUT', `/v1/pods/${pod.id}`, next);
  const edited = await eventually('the change', async () => {
    const view = await podIn(agent, pod.id, 'running');
    return view.observed_generation === 2 && view.change === null && view;
  });
  expect(edited.container_id).not.toBe(pod.container_id);
  expect(await pageOf(edited)).toBe('changed\n');
  expect(await agent.core.dataRootsOf(pod.id)).toEqual([{ mountPath: '/www', hostPath: www }]);
  expect(await engine.listVolumes(ownerOf(host.executorId))).toHaveLength(2);

  await send(agent, 'DELETE', `/v1/pods/${pod.id}`);
  await podIn(agent, pod.id, 'removed');
  expect(await engine.listVolumes(ownerOf(host.executorId))).toEqual([]);
  expect(await agent.core.dataRootsOf(pod.id)).toEqual([]);
});

it('touches only its own objects if two agents share an engine', async () => {
  const [one, two] = [await newHost(), await newHost()];
  const [first, second] = [startAgent(one), startAgent(two)];
  const pod = await launch(first);
  const other = await launch(second);
  await second.core.reconcile.runOnce();
  expect(await orphansOf(second)).toBe(0);
  expect((await send(second, 'DELETE', `/v1/pods/${pod.id}`)).status).toBe(404);
  await send(second, 'DELETE', `/v1/pods/${other.id}`);
  await podIn(second, other.id, 'removed');
  expect(await pageOf(pod)).toContain('running');

  // The second agent gets the same pod id, but the container name belongs to the first.
  await send(second, 'PUT', `/v1/pods/${pod.id}`, podSpec());
  const refused = await podIn(second, pod.id, 'quarantined');
  expect(refused.reason).toBe('NameTaken');
  await send(second, 'DELETE', `/v1/pods/${pod.id}`);
  await podIn(second, pod.id, 'removed');
  expect(await engine.inspectContainer(pod.container_id ?? '')).toMatchObject({
    status: 'running',
  });
  expect(await pageOf(pod)).toContain('running');
});

it('leases another port if its own is in use at the start', async () => {
  const host = await newHost();
  const squatter = startAgent({ ...(await newHost()), portRange: host.portRange });
  const taken = await launch(squatter);
  const executorId = host.executorId;
  const database = openDatabase(host.database);
  const options = { engine, clock: systemClock, executorId, database, portRange: host.portRange };
  // The probe reports the port as free, so the engine detects the conflict.
  const agent = createTestAgent({ ...options, probePort: async () => true });
  running.push(agent);
  agent.start();
  const pod = await launch(agent);
  expect(pod.ports['8000']).not.toBe(taken.ports['8000']);
  expect(pod).toMatchObject({ restart_count: 0, last_exit: null, reason: null });
  expect(await pageOf(pod)).toContain('running');
});

it('restarts a pod that exits, and reports the exit', async () => {
  const agent = startAgent(await newHost());
  const pod = await launch(agent, { command: ['sh', '-c', 'sleep 0.2; exit 3'] });
  const view = await eventually('the first restart', async () => {
    const { body } = await send(agent, 'GET', `/v1/pods/${pod.id}`);
    return body.restart_count > 0 && PodView.parse(body);
  });
  expect(view.last_exit).toMatchObject({
    exit_code: 3,
    oom_killed: false,
    reason: 'ExitedNonZero',
  });
  expect(view.container_id).toBe(pod.container_id);
});

it('stops retrying a pod that has never worked within the limit, also after a restart of the agent', async () => {
  const host = await newHost();
  const first = startAgent(host);
  const { id } = await launch(first, { command: ['sh', '-c', 'sleep 0.2; exit 3'] });
  await stopAgent(first);
  const store = openDatabase(host.database);
  store.prepare('UPDATE pods SET created_ms = created_ms - :ms').run({ ms: LAUNCH_LIMIT_MS });
  store.close();
  const failed = await podIn(startAgent(host), id, 'failed');
  expect(failed).toMatchObject({ next_retry_ms: null, last_exit: { exit_code: 3 } });
});

it('distinguishes an out-of-memory kill from a failure', async () => {
  const agent = startAgent(await newHost());
  const limits = { cpu_cores: 1, memory_bytes: 2 ** 25, shm_bytes: 2 ** 20, pids: 64 };
  const pod = await launch(agent, { command: ['sh', '-c', 'sleep 0.2; tail /dev/zero'], limits });
  const exit = await eventually('the end', async () => {
    const { body } = await send(agent, 'GET', `/v1/pods/${pod.id}`);
    return PodView.parse(body).last_exit;
  });
  expect(exit).toMatchObject({ oom_killed: true, reason: 'OOMKilled' });
});
