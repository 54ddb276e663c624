/** kill -9 of the agent before and after every change that launch, reboot, replacement and removal make in the engine. */
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest';
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { PodView } from '#shared/agent-api/pod.ts';
import { systemClock } from '#shared/clock.ts';
import { systemRandom } from '#shared/random.ts';
import { createDockerodeEngine } from '../../agent/docker/dockerode-engine.ts';
import { LABELS } from '../../agent/docker/engine.ts';
import { type AgentHome, type AgentProcess, createAgentHome } from '../fakes/agent-process.ts';
import { type EngineCall, type EngineProxy, startEngineProxy } from '../fakes/engine-proxy.ts';
import { eventually } from '../fakes/eventually.ts';
import { podSpec } from '../fakes/test-agent.ts';

/** From the agent's return to the state that was asked for. */
const CONVERGES_WITHIN_MS = 10_000;
const KILLED_WITHIN_MS = 15_000;

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const spec = podSpec({ environment: { TEST_RUN: inject('testRun') }, stop_grace_seconds: 1 });
let proxy: EngineProxy;
let home: AgentHome;
let agent: AgentProcess;

beforeAll(async () => {
  proxy = await startEngineProxy();
  const ports = 24_000 + (process.pid % 40) * 100;
  home = createAgentHome({
    AGENT_DOCKER_SOCKET: proxy.socketPath,
    AGENT_PORT_RANGE: `${ports}-${ports + 99}`,
  });
  agent = await home.start();
  // The one change that is no pod's: the agent tries what the engine makes of a disk limit.
  await eventually('the try of a disk limit', async () => {
    const { isolation } = await agent.client.inventory();
    return isolation.disk_quota !== 'none';
  });
});

afterEach(() => proxy.watch(() => undefined));

afterAll(async () => {
  await agent.stop();
  const labels = { [LABELS.executor]: home.executorId };
  for (const container of await engine.listContainers(labels)) {
    await engine.removeContainer(container.id);
  }
  for (const network of await engine.listNetworks(labels)) await engine.removeNetwork(network.id);
  await proxy.close();
  home.remove();
});

type Operation = {
  /** Whether the pod runs before. */
  onRunning: boolean;
  ask(client: AgentClient, id: string): Promise<unknown>;
  isDone(view: PodView, before: PodView | null): boolean;
  containers: number;
};

const OPERATIONS: Record<string, Operation> = {
  launch: {
    onRunning: false,
    ask: (client, id) => client.putPod(id, spec),
    isDone: (view) => view.phase === 'running',
    containers: 1,
  },
  reboot: {
    onRunning: true,
    ask: (client, id) => client.rebootPod(id, 1),
    isDone: (view, before) =>
      view.phase === 'running' &&
      view.reboots_done === 1 &&
      view.container_id === before?.container_id,
    containers: 1,
  },
  replacement: {
    onRunning: true,
    ask: (client, id) =>
      client.putPod(id, { ...spec, generation: 2, environment: { ...spec.environment, NEW: '1' } }),
    isDone: (view) => view.phase === 'running' && view.observed_generation === 2,
    containers: 1,
  },
  removal: {
    onRunning: true,
    ask: (client, id) => client.deletePod(id),
    isDone: (view) => view.phase === 'removed',
    containers: 0,
  },
};

const isChange = (call: EngineCall) => !call.startsWith('GET');

async function until(id: string, what: string, isDone: (view: PodView) => boolean) {
  return eventually(
    what,
    async () => {
      const view = await agent.client.getPod(id);
      return isDone(view) ? view : false;
    },
    CONVERGES_WITHIN_MS,
  );
}

async function prepare(operation: Operation): Promise<{ id: string; before: PodView | null }> {
  const id = systemRandom.uuid();
  if (!operation.onRunning) return { id, before: null };
  await agent.client.putPod(id, spec);
  return { id, before: await until(id, 'running before', (view) => view.phase === 'running') };
}

/** The changes that the operation makes in the engine when nobody interferes, in order. */
async function changesOf(operation: Operation): Promise<EngineCall[]> {
  const { id, before } = await prepare(operation);
  const calls: EngineCall[] = [];
  proxy.watch((call, moment) => {
    if (moment === 'before' && isChange(call)) calls.push(call);
  });
  await operation.ask(agent.client, id);
  await until(id, 'done undisturbed', (view) => operation.isDone(view, before));
  proxy.watch(() => undefined);
  await clear(id);
  return calls;
}

/** Kills the agent at the `index`th change; resolves once it is dead. */
async function killAt(index: number, moment: 'before' | 'after', ask: () => Promise<unknown>) {
  let seen = -1;
  const { child, exited } = agent;
  proxy.watch(async (call, at) => {
    if (!isChange(call)) return;
    if (at === 'before') seen += 1;
    if (seen !== index || at !== moment) return;
    child.kill('SIGKILL');
    await exited;
  });
  const tooLong = systemClock.sleep(KILLED_WITHIN_MS).then(() => {
    throw new Error(`change ${index} was never made`);
  });
  await Promise.race([ask().catch(() => undefined), tooLong]);
  await Promise.race([exited, tooLong]);
  tooLong.catch(() => undefined);
  proxy.watch(() => undefined);
}

async function expectNothingLeaked(id: string, operation: Operation, view: PodView) {
  const containers = await engine.listContainers({ [LABELS.pod]: id });
  expect(containers).toHaveLength(operation.containers);
  expect(await engine.listNetworks({ [LABELS.pod]: id })).toHaveLength(operation.containers);
  expect(Object.keys(view.ports)).toHaveLength(operation.containers);
  if (operation.containers === 1) {
    expect(containers[0]).toMatchObject({ id: view.container_id, status: 'running' });
  }
}

async function clear(id: string): Promise<void> {
  await agent.client.deletePod(id);
  await until(id, 'removed', (view) => view.phase === 'removed');
}

it.each(Object.keys(OPERATIONS))(
  'a %s survives kill -9 at each of its changes',
  async (name) => {
    const operation = OPERATIONS[name];
    if (operation === undefined) throw new Error(name);
    const changes = await changesOf(operation);
    expect(changes.length).toBeGreaterThan(1);
    for (const [index, change] of changes.entries()) {
      for (const moment of ['before', 'after'] as const) {
        const { id, before } = await prepare(operation);
        await killAt(index, moment, () => operation.ask(agent.client, id));
        agent = await home.start();
        const what = `${name} killed ${moment} ${change}`;
        const view = await until(id, what, (now) => operation.isDone(now, before));
        if (before !== null && operation.containers === 1) expect(view.ports).toEqual(before.ports);
        await expectNothingLeaked(id, operation, view);
        await clear(id);
      }
    }
  },
  180_000,
);
