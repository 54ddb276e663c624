/** An agent process behind an engine proxy, killed before and after every engine change of an operation. */
import { expect } from 'vitest';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createDockerodeEngine } from '../../../agent/containers/engine/dockerode-engine.ts';
import { type ContainerState, LABELS } from '../../../agent/containers/engine/engine.ts';
import { createRunInContainer } from '../../../agent/containers/engine/run-in-container.ts';
import { type AgentProcess, createAgentHome } from '../agents/agent-process.ts';
import { eventually } from '../eventually.ts';
import { type EngineCall, startEngineProxy } from './engine-proxy.ts';
import { momentsOf } from './kill-moments.ts';

const ENGINE_SOCKET = '/var/run/docker.sock';
const KILLED_WITHIN_MS = 45_000;
/** Maximum time from the agent's restart to the requested state, also on a busy host. */
const CONVERGES_WITHIN_MS = 120_000;
const PORTS_PER_AGENT = 100;

export type Operation = {
  /** True if the pod must run before the operation starts. */
  onRunning: boolean;
  request(client: AgentClient, id: string): Promise<unknown>;
  isDone(view: PodView, before: PodView | null): boolean;
  /** Number of containers that the pod has at the end. */
  containers: number;
};

const isChange = (call: EngineCall) => !call.startsWith('GET');

/** Starts the agent. `spec` describes the pods that exist before an operation, each with one volume. */
export async function startKillMatrix(spec: PodSpecInput, firstPort: number) {
  const engine = createDockerodeEngine({ socketPath: ENGINE_SOCKET, clock: systemClock });
  const runInContainer = createRunInContainer({ socketPath: ENGINE_SOCKET, clock: systemClock });
  const dataFile = `${spec.volumes?.[0]}/data`;
  const proxy = await startEngineProxy();
  const home = createAgentHome({
    AGENT_DOCKER_SOCKET: proxy.socketPath,
    AGENT_PORT_RANGE: `${firstPort}-${firstPort + PORTS_PER_AGENT - 1}`,
  });
  let agent: AgentProcess = await home.start();
  // The agent's test of the engine's disk limit is its only engine change that concerns no pod.
  await eventually('the test of a disk limit', async () => {
    const { isolation } = await agent.client.inventory();
    return isolation.disk_quota !== 'none';
  });

  async function until(id: string, what: string, isDone: (view: PodView) => boolean) {
    let last: PodView | null = null;
    const look = async () => {
      last = await agent.client.getPod(id);
      return isDone(last) ? last : false;
    };
    return eventually(what, look, CONVERGES_WITHIN_MS).catch((cause: unknown) => {
      throw new Error(`${what}: ${JSON.stringify(last)}`, { cause });
    });
  }

  async function prepare(operation: Operation): Promise<{ id: string; before: PodView | null }> {
    const id = systemRandom.uuid();
    if (!operation.onRunning) return { id, before: null };
    await agent.client.putPod(id, spec);
    const isRunning = (view: PodView) => view.phase === 'running';
    const before = await until(id, 'running before', isRunning);
    await runInContainer(before.container_id ?? '', ['sh', '-c', `echo ${id} >${dataFile}`]);
    return { id, before };
  }

  /** Returns the operation's engine changes in a run without kills, in order. */
  async function changesOf(operation: Operation): Promise<EngineCall[]> {
    const { id, before } = await prepare(operation);
    const calls: EngineCall[] = [];
    proxy.watch((call, moment) => {
      if (moment === 'before' && isChange(call)) calls.push(call);
    });
    await operation.request(agent.client, id);
    const isDone = (view: PodView) => operation.isDone(view, before);
    const view = await until(id, 'done undisturbed', isDone);
    await expectNothingLeaked(id, operation, view);
    proxy.watch(() => undefined);
    await clear(id);
    return calls;
  }

  /** Kills the agent at the `index`th change; resolves once it is dead. */
  async function killAt(
    index: number,
    moment: 'before' | 'after',
    request: () => Promise<unknown>,
  ) {
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
    await Promise.race([request().catch(() => undefined), tooLong]);
    await Promise.race([exited, tooLong]);
    tooLong.catch(() => undefined);
    proxy.watch(() => undefined);
  }

  async function expectNothingLeaked(id: string, operation: Operation, view: PodView) {
    const found = await eventually('the remaining containers', async () => {
      const containers = await engine.listContainers({ [LABELS.pod]: id });
      return containers.length <= operation.containers && containers;
    });
    expect(found).toHaveLength(operation.containers);
    expect(await engine.listNetworks({ [LABELS.pod]: id })).toHaveLength(operation.containers);
    expect(Object.keys(view.ports)).toHaveLength(operation.containers);
    const volumes = await engine.listVolumes({ [LABELS.pod]: id });
    expect(volumes).toHaveLength(operation.containers);
    if (operation.containers === 1) {
      if (operation.onRunning) {
        const kept = await runInContainer(view.container_id ?? '', ['cat', dataFile]);
        expect(kept).toEqual({ exitCode: 0, stdout: `${id}\n` });
      }
      expect(found[0]).toMatchObject({ id: view.container_id, status: 'running' });
    }
  }

  async function clear(id: string): Promise<void> {
    await agent.client.deletePod(id);
    await until(id, 'removed', (view) => view.phase === 'removed');
  }

  /** Fails when two containers of the pod run at once, until it is stopped. */
  function watchForTwins(id: string): { stop(): Promise<void> } {
    let over = false;
    const isRunning = ({ status }: ContainerState) => status === 'running';
    const watching = (async () => {
      while (!over) {
        const running = (await engine.listContainers({ [LABELS.pod]: id })).filter(isRunning);
        if (running.length > 1) throw new Error(`${running.length} containers of ${id} run`);
        await systemClock.sleep(50);
      }
    })();
    watching.catch(() => undefined);
    return {
      stop() {
        over = true;
        return watching;
      },
    };
  }

  /** Kills at one change, before and after it. */
  async function survive(name: string, operation: Operation, index: number, change: EngineCall) {
    for (const moment of momentsOf(index)) {
      const { id, before } = await prepare(operation);
      const twins = watchForTwins(id);
      await killAt(index, moment, () => operation.request(agent.client, id));
      agent = await home.start();
      const what = `${name} killed ${moment} ${change}`;
      const isDone = (now: PodView) => operation.isDone(now, before);
      const view = await until(id, what, isDone);
      await twins.stop();
      if (before !== null && operation.containers === 1) expect(view.ports).toEqual(before.ports);
      await expectNothingLeaked(id, operation, view);
      await clear(id);
    }
  }

  return {
    /** Runs the operation once without a kill, then once for each kill. Throws on the first violation. */
    async run(name: string, operation: Operation): Promise<void> {
      const changes = await changesOf(operation);
      expect(changes.length).toBeGreaterThan(1);
      for (const [index, change] of changes.entries()) {
        await survive(name, operation, index, change);
      }
    },
    async close(): Promise<void> {
      await agent.stop();
      const labels = { [LABELS.executor]: home.executorId };
      for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
      for (const { id } of await engine.listNetworks(labels)) await engine.removeNetwork(id);
      for (const { name } of await engine.listVolumes(labels)) await engine.removeVolume(name);
      await proxy.close();
      home.remove();
    },
  };
}
