/**
 * Agents on the real engine, each with its own executor id, ports and firewall rules. They remove everything that they
 * create.
 */

import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type CommandResult, runCommand } from '#shared/runtime/run-command.ts';
import type { Agent } from '../../../agent/app.ts';
import { createDockerodeEngine } from '../../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../../agent/containers/engine/engine.ts';
import type { RuleNames } from '../../../agent/containers/network/firewall-rules.ts';
import { createIptablesFirewall } from '../../../agent/containers/network/iptables-firewall.ts';
import { probePort } from '../../../agent/leases/port.service.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';
import { createTestAgent, NO_GATEWAY, podSpec, TEST_SECRETS } from './test-agent.ts';

const PORTS_PER_AGENT = 20;
const COMMAND_BOUNDS = { timeoutMs: 20_000, maxOutputBytes: 4 * 1024 * 1024 };

/** Runs a program and returns its result, whatever the exit status. */
export function command(file: string, ...args: string[]): Promise<CommandResult> {
  return runCommand(file, args, COMMAND_BOUNDS);
}

/** Runs a program; rejects on an exit status other than 0. */
export async function mustRun(file: string, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await command(file, ...args);
  if (exitCode !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

export type RealHost = Awaited<ReturnType<typeof createRealHost>>;

/** Answer of an SSH gateway that has no sessions. */
const NO_SESSIONS = {
  sessions: 0,
  sessions_total: 0,
  login_failures_total: 0,
  sessions_by_pod: {},
};

/** Creates an agent that listens on all addresses, with separate firewall rules beside those of other agents. */
export async function createRealHost(resolvers: readonly string[] = []) {
  const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
  const executorId = systemRandom.uuid();
  // A bridge prefix that no other agent uses, short enough to leave room for the pod's id.
  const bridges = `q${systemRandom.uuid().slice(0, 2)}`;
  const names: RuleNames = {
    input: `PODWRIGHT-${bridges}-INPUT`,
    forward: `PODWRIGHT-${bridges}-FORWARD`,
    bridges,
  };
  const newFirewall = () =>
    createIptablesFirewall({
      runCommand,
      allow: [],
      resolvers: async () => resolvers,
      hasIpv6: true,
      names,
    });
  const firewall = newFirewall();
  const portRange = await freePorts(PORTS_PER_AGENT);
  const scratchFolder = join(tmpdir(), `podwright-scratch-${executorId}`);
  const agent: Agent = createTestAgent({
    engine,
    clock: systemClock,
    executorId,
    probePort,
    portRange,
    firewall,
    scratchFolder,
    gatewayLink: { ...NO_GATEWAY, traffic: () => NO_SESSIONS },
    log: createLog({ name: 'test-agent', level: 'silent' }),
  });
  const agentPort = portRange.last;
  await agent.server.listen({ host: '0.0.0.0', port: agentPort });
  agent.start();

  async function view(id: string): Promise<PodView> {
    return PodView.parse((await agent.server.inject(`/v1/pods/${id}`)).json());
  }

  return {
    agent,
    agentPort,
    engine,
    executorId,
    names,
    /** Returns the firewall of another agent on the same engine. */
    newFirewall,
    view,
    /** Launches a running pod; `script` replaces the command of the image. */
    async launch(script?: string, change: Partial<PodSpecInput> = {}): Promise<PodView> {
      const id = systemRandom.uuid();
      const own = script === undefined ? {} : { entrypoint: ['/bin/sh', '-c', script] };
      const request = { method: 'PUT' as const, url: `/v1/pods/${id}` };
      const sent = await agent.server.inject({
        ...request,
        payload: podSpec({ ...own, ...change }),
      });
      if (sent.statusCode !== 200) throw new Error(sent.body);
      return eventually(`pod ${id}`, async () => {
        const seen = await view(id);
        return (seen.phase === 'running' || seen.last_exit !== null) && seen;
      });
    },
    remove: (id: string) => agent.server.inject({ method: 'DELETE', url: `/v1/pods/${id}` }),
    /** Returns true if a program inside the pod can fetch `url`. */
    async reaches(pod: PodView, url: string): Promise<boolean> {
      const inside = ['exec', pod.container_id ?? '', 'sh', '-c', getScript(url)];
      return (await command('docker', ...inside)).stdout.startsWith('HTTP/');
    },
    /** The pod's address on its bridge. */
    async addressOf(pod: PodView): Promise<string> {
      const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
      return (await mustRun('docker', 'inspect', '-f', format, pod.container_id ?? '')).trim();
    },
    async close(): Promise<void> {
      await agent.stop();
      const owner = { [LABELS.executor]: executorId };
      for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
      for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
      for (const { name } of await engine.listVolumes(owner)) await engine.removeVolume(name);
      await firewall.remove();
      for (const folder of [join(TEST_SECRETS, executorId), scratchFolder]) {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}

/** Shell line that fetches `url` with busybox's nc: a statically linked busybox wget crashes. */
export function getScript(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  const request = `GET ${pathname} HTTP/1.0\\r\\n\\r\\n`;
  return `printf '${request}' | timeout 3 /bin/busybox nc -w 2 ${hostname} ${port}`;
}
