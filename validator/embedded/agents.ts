/** Agents of a local marketplace: registered through the portal, then started with their executor ids. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  ENROLMENT_DAYS,
  enrolmentExpiry,
  readEnrolment,
  signEnrolment,
  writeEnrolment,
} from '#shared/api/agent/identity.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { agentArguments, gatewayArguments } from '#shared/runtime/node-process.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type SupervisedChild, superviseChild } from '#shared/runtime/supervised-child.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { openIdentity } from '#shared/signing/identity.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { createCappedFile } from './capped-file.ts';
import { type DemoProvider, withdrawStaleNodes } from './demo-provider.ts';
import { agentNames, type Home, shellVariables, writePrivateFile } from './home.ts';
import type { LocalGpus } from './local-gpus.ts';
import type { MetricsAddresses } from './metrics-listeners.ts';
import { POD_PORTS_PER_AGENT, type StartOptions } from './options.ts';

export type LocalAgent = {
  executorId: string;
  url: string;
  process: SupervisedChild;
  /** The agent's SSH gateway. */
  gateway: SupervisedChild;
};

export type StartAgentsOptions = {
  options: StartOptions;
  home: Home;
  clock: Clock;
  log: Log;
  gpus: readonly LocalGpus[];
  random: Random;
  provider: DemoProvider;
  /** The provider's hotkey, which enrols the agents. */
  providerSigner: LocalSigner;
  /** The only key whose commands the agents accept. */
  validatorHotkey: Hotkey;
  /** Addresses for the agents' metrics. */
  metrics: Pick<MetricsAddresses, 'agent'>;
  /** Environment of this process; children inherit a few variables. */
  environment: Record<string, string | undefined>;
  /** Called each time an agent or gateway starts to serve: its process id may have changed. */
  onRestart(): void;
  /** Called with one line when an agent or gateway ends unexpectedly. */
  onEnd(line: string): void;
};

/** Variables that children inherit. */
const INHERITED: readonly string[] = ['PATH', 'HOME', 'DOCKER_HOST', 'TZ', 'LANG'];
/** Prefix of inherited tracing variables. */
const TRACING = 'OTEL_';

const UNIX_SOCKET = /^unix:\/\/(.+)$/;

/** Starts one agent per entry of `gpus`, and withdraws nodes of earlier runs that have no agent now. */
export async function startAgents(parts: StartAgentsOptions): Promise<LocalAgent[]> {
  const { options, home, gpus, provider } = parts;
  const agents: LocalAgent[] = [];
  // An earlier start may have had more agents.
  for (const name of agentNames(home)) rmSync(home.variables(name), { force: true });
  for (const [index, gpu] of gpus.entries()) {
    const port = options['agent-port'] + index;
    const offer = { ip: options.host, port, gpuType: gpu.gpuType, gpuCount: gpu.gpuCount };
    const executorId = await provider.ensureNode(offer);
    const isSimulated = gpu.environment['AGENT_GPU'] !== 'nvidia';
    if (isSimulated) await provider.ensureSimulatedPlace(executorId, index);
    enrolIn(parts, executorId);
    agents.push({
      executorId,
      url: `https://${hostAndPort(options.host, port)}`,
      process: startAgent(parts, executorId, index, port),
      gateway: startGateway(parts, executorId, index),
    });
  }
  await withdrawStaleNodes(parts, new Set(agents.map((agent) => agent.executorId)));
  return agents;
}

/**
 * Enrols an agent as `agent enrol` does. An agent of an earlier run keeps its key; its enrolment is renewed after half
 * of its validity.
 */
function enrolIn({ home, random, clock, providerSigner }: StartAgentsOptions, id: string): void {
  const folder = home.agent(id);
  const { publicKey: public_key } = openIdentity(folder, random);
  const present = readEnrolment(folder);
  const isGood = present?.public_key === public_key && present.hotkey === providerSigner.hotkey;
  if (isGood && present.expires_ms > enrolmentExpiry(ENROLMENT_DAYS / 2, clock.now())) return;
  const expires_ms = enrolmentExpiry(ENROLMENT_DAYS, clock.now());
  const request = { executor_id: id, public_key, expires_ms };
  writeEnrolment(folder, signEnrolment(request, providerSigner), random);
}

function startAgent(
  parts: StartAgentsOptions,
  executorId: string,
  index: number,
  port: number,
): SupervisedChild {
  const { options, home, clock, log, validatorHotkey } = parts;
  const name = `agent-${index + 1}`;
  const metrics = parts.metrics.agent(index);
  const firstPodPort = options['pod-ports'] + index * POD_PORTS_PER_AGENT;
  const variables = {
    ...parts.gpus[index]?.environment,
    AGENT_EXECUTOR_ID: executorId,
    AGENT_HOST_SHARE: String(Math.floor(100 / options.agents)),
    AGENT_HOME: home.agent(executorId),
    AGENT_HOST: options.host,
    AGENT_PORT: String(port),
    AGENT_PORT_RANGE: `${firstPodPort}-${firstPodPort + POD_PORTS_PER_AGENT - 1}`,
    AGENT_METRICS_LISTEN: hostAndPort(metrics.host, metrics.port),
    AGENT_TRUSTED_KEYS: `${validatorHotkey}=validator-control+validator-read`,
    // A local marketplace may use a registry on this machine.
    AGENT_ALLOW_LOCAL_REGISTRIES: 'true',
  };
  // The agent's other commands and the doctor read this file.
  writePrivateFile(home.variables(name), shellVariables(variables));
  return superviseChild({
    name,
    arguments: agentArguments(),
    clock,
    log,
    output: createCappedFile(home.log(name)),
    onReady: parts.onRestart,
    onEnd: (how) => parts.onEnd(`${name} ended and is restarted: ${how}`),
    environment: { ...inheritedVariables(parts), ...variables, AGENT_EXIT_WITH_PARENT: 'true' },
  });
}

/** Starts the SSH gateway of an agent. It listens on all addresses, as Docker does for the pods' other ports. */
function startGateway(
  parts: StartAgentsOptions,
  executorId: string,
  index: number,
): SupervisedChild {
  const { home, clock, log } = parts;
  const name = `ssh-${index + 1}`;
  const socket = UNIX_SOCKET.exec(parts.environment['DOCKER_HOST'] ?? '')?.[1];
  return superviseChild({
    name,
    arguments: gatewayArguments(),
    clock,
    log,
    output: createCappedFile(home.log(name)),
    onReady: parts.onRestart,
    onEnd: (how) => parts.onEnd(`${name} ended and is restarted: ${how}`),
    environment: {
      ...inheritedVariables(parts),
      SSH_SNAPSHOT: join(home.agent(executorId), 'ssh', 'gateway.json'),
      ...(socket === undefined ? {} : { SSH_DOCKER_SOCKET: socket }),
      SSH_EXIT_WITH_PARENT: 'true',
    },
  });
}

function inheritedVariables({ environment }: StartAgentsOptions): Record<string, string> {
  const isPassedOn = (name: string) => INHERITED.includes(name) || name.startsWith(TRACING);
  const passed = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined || !isPassedOn(name) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(passed);
}
