/** Agents that run pods on the real Docker engine, each for its own executor, until `close()`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { Agent } from '../../../agent/app.ts';
import { createDockerodeEngine } from '../../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../../agent/containers/engine/engine.ts';
import { openDatabase } from '../../../agent/database/database.ts';
import { probePort } from '../../../agent/leases/port.service.ts';
import { createTestAgent, podSpec } from '../agents/test-agent.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';

const PORTS_PER_AGENT = 10;

/** Data of an agent that its restarts share. */
export type PodHost = {
  executorId: string;
  database: string;
  portRange: { first: number; last: number };
};

export function createRealPods() {
  const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const executors: string[] = [];
  const running = new Set<Agent>();

  return {
    engine,
    ownerOf,
    pageOf,
    podIn,
    send,
    async newHost(): Promise<PodHost> {
      const executorId = systemRandom.uuid();
      executors.push(executorId);
      const database = join(home, `${executorId}.sqlite`);
      return { executorId, database, portRange: await freePorts(PORTS_PER_AGENT) };
    },
    /** Starts an agent. `probe` replaces its probe for free ports. */
    startAgent({ executorId, database, portRange }: PodHost, probe = probePort): Agent {
      const store = openDatabase(database);
      const host = { executorId, portRange, database: store, probePort: probe };
      const agent = createTestAgent({ engine, clock: systemClock, ...host });
      running.add(agent);
      agent.start();
      return agent;
    },
    async stopAgent(agent: Agent): Promise<void> {
      running.delete(agent);
      await agent.stop();
    },
    /** Launches a pod and waits until it runs. */
    async launch(agent: Agent, change: Partial<PodSpecInput> = {}): Promise<PodView> {
      const id = systemRandom.uuid();
      const { status, body } = await send(agent, 'PUT', `/v1/pods/${id}`, podSpec(change));
      if (status !== 200) throw new Error(JSON.stringify(body));
      return podIn(agent, id, 'running');
    },
    /** Stops the agents and removes everything that they created. */
    async close(): Promise<void> {
      await Promise.all([...running].map((agent) => agent.stop()));
      for (const executorId of executors) {
        const owner = ownerOf(executorId);
        for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
        for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
        for (const { name } of await engine.listVolumes(owner)) await engine.removeVolume(name);
      }
      rmSync(home, { recursive: true });
    },
  };
}

/** Labels of the objects of an executor. */
const ownerOf = (executorId: string) => ({ [LABELS.executor]: executorId });

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

/** Waits until a pod has the phase. */
async function podIn(agent: Agent, id: string, phase: PodView['phase']): Promise<PodView> {
  return eventually(`${id} ${phase}`, async () => {
    const { body } = await send(agent, 'GET', `/v1/pods/${id}`);
    const view = PodView.parse(body);
    if (view.phase !== phase && view.phase === 'failed') throw new Error(view.message);
    return view.phase === phase && view;
  });
}

/** Returns the page that a pod of the builtin image serves. */
async function pageOf(view: PodView): Promise<string> {
  const url = `http://127.0.0.1:${view.ports['8000']}/`;
  return eventually(`an answer of ${url}`, async () => {
    const response = await fetch(url).catch(() => null);
    return response?.ok === true && response.text();
  });
}
