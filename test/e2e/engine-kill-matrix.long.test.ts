/** kill -9 of the engine, alone and together with the agent, at changes that pods make in it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { type ContainerEngine, LABELS } from '../../agent/containers/engine/engine.ts';
import { createRunInContainer } from '../../agent/containers/engine/run-in-container.ts';
import {
  type AgentHome,
  type AgentProcess,
  createAgentHome,
} from '../fakes/agents/agent-process.ts';
import { podSpec } from '../fakes/agents/test-agent.ts';
import { type OwnEngine, startOwnEngine } from '../fakes/engine/own-engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { type CallGate, createCallGate } from '../fakes/faults/call-gate.ts';
import { type EngineProxy, startEngineProxy } from '../fakes/faults/engine-proxy.ts';
import { momentsOf } from '../fakes/faults/kill-moments.ts';
import { freePorts } from '../fakes/free-ports.ts';

/** Maximum time from the restart of the killed process to the requested state, also on a busy host. */
const CONVERGES_WITHIN_MS = 120_000;
const TEST_MS = 480_000;

let own: OwnEngine;
let proxy: EngineProxy;
let engine: ContainerEngine;
let runInContainer: ReturnType<typeof createRunInContainer>;
let gate: CallGate;
let home: AgentHome;
let agent: AgentProcess;
let freeGpus: string[];

beforeAll(async () => {
  own = await startOwnEngine();
  proxy = await startEngineProxy(own.socketPath);
  engine = createDockerodeEngine({ socketPath: own.socketPath, clock: systemClock });
  runInContainer = createRunInContainer({ socketPath: own.socketPath, clock: systemClock });
  gate = createCallGate(proxy, engine);
  const { first, last } = await freePorts(60);
  home = createAgentHome({
    AGENT_DOCKER_SOCKET: proxy.socketPath,
    AGENT_PORT_RANGE: `${first}-${last}`,
    AGENT_GPU: 'simulated',
    AGENT_SIMULATED_GPUS: 'NVIDIA L40S*5',
  });
  agent = await home.start();
  // The agent makes only one change outside a pod: it tests if the engine supports a disk limit.
  freeGpus = await eventually('the test of a disk limit', async () => {
    const { isolation, gpu } = await agent.client.inventory();
    return isolation.disk_quota !== 'none' && gpu.devices.map(({ uuid }) => uuid);
  });
});

afterAll(async () => {
  await agent.stop();
  await proxy.close();
  await own.remove();
  home.remove();
});

/** A pod of the matrix: the next request to it, and the condition that ends it. */
type Case = {
  name: string;
  id: string;
  spec: PodSpecInput;
  before: PodView | null;
  request(client: AgentClient): Promise<unknown>;
  isDone(view: PodView): boolean;
};

const view = (id: string) => agent.client.getPod(id);

async function until(what: string, id: string, isDone: (view: PodView) => boolean) {
  let seen: PodView | null = null;
  return eventually(
    what,
    async () => {
      seen = await view(id);
      return isDone(seen) && seen;
    },
    CONVERGES_WITHIN_MS,
  ).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(seen)}`);
  });
}

function newPod(): Pick<Case, 'id' | 'spec'> {
  const gpu = freeGpus.shift() ?? '';
  return {
    id: systemRandom.uuid(),
    spec: podSpec({ gpu_uuids: [gpu], volumes: ['/data'], stop_grace_seconds: 1 }),
  };
}

function launchOf(pod = newPod()): Case {
  const isDone = (now: PodView) => now.phase === 'running';
  const request = (client: AgentClient) => client.putPod(pod.id, pod.spec);
  return { ...pod, name: 'launch', before: null, request, isDone };
}

function rebootOf({ id, spec }: Case, before: PodView): Case {
  const count = before.reboots_done + 1;
  const request = (client: AgentClient) => client.rebootPod(id, count);
  const isDone = (now: PodView) =>
    now.phase === 'running' &&
    now.reboots_done === count &&
    now.container_id === before.container_id;
  return { name: 'reboot', id, spec, before, request, isDone };
}

function replacementOf({ id, spec: old }: Case, before: PodView): Case {
  const generation = before.generation + 1;
  const spec = { ...old, generation, environment: { GENERATION: `${generation}` } };
  const request = (client: AgentClient) => client.putPod(id, spec);
  const isDone = (now: PodView) =>
    now.phase === 'running' && now.observed_generation === generation;
  return { name: 'replacement', id, spec, before, request, isDone };
}

function removalOf({ id, spec }: Case, before: PodView): Case {
  const request = (client: AgentClient) => client.deletePod(id);
  const isDone = (now: PodView) => now.phase === 'removed';
  return { name: 'removal', id, spec, before, request, isDone };
}

/** Returns the output of a shell command in the pod. */
async function inPod({ container_id }: PodView, command: string): Promise<string | undefined> {
  const done = await runInContainer(container_id ?? '', ['sh', '-c', command]);
  return done?.stdout;
}

/**
 * Waits for the end of replacements: a new generation must run for some seconds before the old container is removed.
 */
async function untilSettled(cases: readonly Case[]): Promise<void> {
  for (const { id, name } of cases) {
    if (name !== 'replacement') continue;
    await eventually('the end of the change', async () => {
      const { change, container_id } = await view(id);
      const found = await engine.listContainers({ [LABELS.pod]: id });
      return change === null && found.length === 1 && found[0]?.id === container_id;
    });
  }
}

async function expectNothingLeaked(cases: readonly Case[]): Promise<void> {
  const alive = cases.filter(({ name }) => name !== 'removal');
  const owner = { [LABELS.executor]: home.executorId };
  const podsOf = (all: readonly { labels: Record<string, string> }[]) =>
    all.map(({ labels }) => labels[LABELS.pod]).toSorted();
  const ids = alive.map(({ id }) => id).toSorted();
  const containers = await engine.listContainers(owner);
  expect(podsOf(containers)).toEqual(ids);
  expect(podsOf(await engine.listNetworks(owner))).toEqual(ids);
  expect(podsOf(await engine.listVolumes(owner))).toEqual(ids);
  expect(containers.every(({ status }) => status === 'running')).toBe(true);
  const { gpu } = await agent.client.inventory();
  for (const { id, spec } of cases) {
    const lease = gpu.devices.find(({ uuid }) => uuid === spec.gpu_uuids?.[0]);
    expect(lease?.leased_by).toBe(ids.includes(id) ? id : null);
  }
  const views = await Promise.all(alive.map(({ id }) => view(id)));
  const ports = views.flatMap((each) => Object.values(each.ports));
  expect(new Set(ports).size).toBe(alive.length);
  for (const now of views) {
    const container = containers.find(({ labels }) => labels[LABELS.pod] === now.id);
    const name = cases.find(({ id }) => id === now.id)?.name;
    expect(now, name).toMatchObject({ container_id: container?.id, restart_count: 0 });
    const before = cases.find(({ id }) => id === now.id)?.before;
    if (before === null) continue;
    expect(now.ports).toEqual(before?.ports);
    expect(await inPod(now, 'cat /data/mark')).toBe(now.id);
  }
}

/** Checks that no pod is declared dead and that the agent responds while the engine is down. */
async function expectPatience(cases: readonly Case[], then: readonly PodView[]): Promise<void> {
  for (const [index, { id, name }] of cases.entries()) {
    const now = await until(`${name} reports that the engine is unavailable`, id, (seen) =>
      ['DockerUnavailable', 'removed'].includes(seen.reason ?? seen.phase),
    );
    expect(now.phase).toBe(then[index]?.phase);
    expect(now).toMatchObject({ restart_count: 0, last_exit: then[index]?.last_exit });
  }
  const readiness = await agent.send({ method: 'GET', path: '/readyz' });
  expect(readiness.status).toBe(503);
}

/**
 * Stops all cases at their change number `index`, kills the processes, restarts them, and waits for the requested
 * states.
 */
async function round(
  cases: readonly Case[],
  index: number,
  moment: 'before' | 'after',
  withAgent: boolean,
): Promise<PodView[]> {
  const ids = cases.map(({ id }) => id);
  const stand = gate.hold(ids, index, moment);
  await Promise.all(cases.map((each) => each.request(agent.client)));
  for (const { id, isDone, name } of cases) {
    // An operation that makes fewer changes has ended by now.
    await eventually(
      `${name} at change ${index}`,
      async () => stand.held.has(id) || isDone(await view(id)),
    );
  }
  const then = await Promise.all(ids.map(view));
  if (withAgent) await agent.kill();
  await own.kill();
  stand.release();
  if (withAgent) {
    // The engine starts last.
    agent = await home.start();
    expect((await view(ids[0] ?? '')).id).toBe(ids[0]);
  } else {
    await expectPatience(cases, then);
  }
  await own.start();
  const calls = JSON.stringify([...stand.held.values()]);
  const views = await Promise.all(
    cases.map(({ id, name, isDone }) =>
      until(`${name} killed ${moment} change ${index} of ${calls}`, id, isDone),
    ),
  );
  await untilSettled(cases);
  await expectNothingLeaked(cases);
  return views;
}

it.each([
  ['the engine', false],
  ['the engine and the agent', true],
])(
  'launch, reboot, replacement and removal survive kill -9 of %s at a sample of their changes',
  async (_, withAgent) => {
    // The first round runs undisturbed, to count the changes. Its pods are used by the next round.
    const [rebooted, replaced, removed] = [launchOf(), launchOf(), launchOf()];
    const counts: number[] = [];
    const record = async (each: Case) => {
      const work = async () => {
        await each.request(agent.client);
        await until(`${each.name} undisturbed`, each.id, each.isDone);
        await untilSettled([each]);
      };
      counts.push((await gate.record(each.id, work)).length);
      return view(each.id);
    };
    let toReboot = await record(rebooted);
    let toReplace = await record(replaced);
    let toRemove = await record(removed);
    for (const pod of [toReboot, toReplace]) await inPod(pod, `printf ${pod.id} >/data/mark`);
    toReboot = await record(rebootOf(rebooted, toReboot));
    let replacing = replacementOf(replaced, toReplace);
    toReplace = await record(replacing);
    let removing: Case = removed;
    expect(Math.min(...counts)).toBeGreaterThan(1);

    for (let index = 0; index < Math.max(...counts); index += 1) {
      for (const moment of momentsOf(index)) {
        const launch = launchOf();
        replacing = replacementOf(replacing, toReplace);
        const reboot = rebootOf(rebooted, toReboot);
        const cases = [launch, reboot, replacing, removalOf(removing, toRemove)];
        const views = await round(cases, index, moment, withAgent);
        const [launched, afterReboot, afterReplacement] = views;
        if (!launched || !afterReboot || !afterReplacement) throw new Error('a view is missing');
        freeGpus.push(removing.spec.gpu_uuids?.[0] ?? '');
        // Pods launched in this round are removed in the next one.
        [removing, toRemove, toReboot, toReplace] = [
          launch,
          launched,
          afterReboot,
          afterReplacement,
        ];
      }
    }
    for (const { id } of [rebooted, replacing, removing]) {
      await agent.client.deletePod(id);
      await until('removed in the end', id, ({ phase }) => phase === 'removed');
    }
    freeGpus.push(...[rebooted, replacing, removing].flatMap(({ spec }) => spec.gpu_uuids ?? []));
  },
  TEST_MS,
);

it('the agent leaves pods running that survive a kill of the engine (--live-restore)', async () => {
  const lasting = await startOwnEngine({ daemonArguments: ['--live-restore'] });
  const { first, last } = await freePorts(20);
  const other = createAgentHome({
    AGENT_DOCKER_SOCKET: lasting.socketPath,
    AGENT_PORT_RANGE: `${first}-${last}`,
  });
  const alone = await other.start();
  try {
    const id = systemRandom.uuid();
    await alone.client.putPod(id, podSpec());
    const isRunning = async () => {
      const seen = await alone.client.getPod(id);
      return seen.phase === 'running' && seen.reason === null && seen;
    };
    const before = await eventually('running', isRunning);
    const client = createDockerodeEngine({ socketPath: lasting.socketPath, clock: systemClock });
    const container = await client.inspectContainer(before.container_id ?? '');
    await lasting.kill();
    await eventually('the reported state', async () => {
      const seen = await alone.client.getPod(id);
      return seen.reason === 'DockerUnavailable' && seen.phase === 'running';
    });
    await lasting.start();
    const after = await eventually('running again', isRunning, CONVERGES_WITHIN_MS);
    expect(after).toMatchObject({ restart_count: 0, last_exit: null });
    expect(await client.inspectContainer(before.container_id ?? '')).toEqual(container);
  } finally {
    await alone.stop();
    await lasting.remove();
    other.remove();
  }
});
