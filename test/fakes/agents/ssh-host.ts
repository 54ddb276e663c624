/** An agent and its SSH gateway as processes, pods on the real engine, and the OpenSSH client. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AgentClient, createAgentClient } from '#shared/api/agent/agent-client.ts';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { agentArguments, COMPILE_CACHE, gatewayArguments } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import { createSignedFetch } from '#shared/signing/signed-fetch.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createDockerodeEngine } from '../../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../../agent/containers/engine/engine.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';
import { podSpec } from './test-agent.ts';

export type Ran = { code: number | null; stdout: Buffer; stderr: string };
export type Key = { file: string; publicKey: string };
export type SshHost = Awaited<ReturnType<typeof startSshHost>>;

const PORTS = 40;
const LIMITS = { cpu_cores: 1, memory_bytes: 2 ** 29, shm_bytes: 2 ** 20, pids: 512 };

/** Starts the processes; `stop` removes everything. `settings` adds variables to the agent's environment. */
export async function startSshHost(settings: Record<string, string> = {}) {
  const home = mkdtempSync(join(tmpdir(), 'podwright-ssh-'));
  const executorId = systemRandom.uuid();
  const signer = createSigner(systemRandom.bytes(32));
  const range = await freePorts(PORTS);
  const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
  const key = newKey('renter');
  let agent = await startAgent();
  let gateway = await startGateway();

  function newKey(name: string): Key {
    const pair = createSshKeyPair(systemRandom, name);
    const file = join(home, `id_${name}`);
    writeFileSync(file, pair.privateKeyPem, { mode: 0o600 });
    return { file, publicKey: pair.publicKey };
  }

  async function startAgent(): Promise<{ child: ChildProcess; client: AgentClient }> {
    const child = await startNode(agentArguments(), {
      AGENT_EXECUTOR_ID: executorId,
      AGENT_HOME: join(home, 'agent'),
      AGENT_HOST: '127.0.0.1',
      AGENT_TLS: 'off',
      AGENT_PORT: '0',
      AGENT_PORT_RANGE: `${range.first}-${range.last}`,
      AGENT_GPU: 'none',
      AGENT_LOG_LEVEL: 'error',
      AGENT_TRUSTED_KEYS: `${signer.hotkey}=validator-control`,
      AGENT_EXIT_WITH_PARENT: 'true',
      ...settings,
    });
    const { port } = child.message as { port: number };
    const base = { baseUrl: `http://127.0.0.1:${port}`, audience: executorId, signer };
    const send = createSignedFetch({ ...base, clock: systemClock, random: systemRandom });
    return { child: child.process, client: createAgentClient({ send, clock: systemClock }) };
  }

  async function startGateway(): Promise<ChildProcess> {
    const started = await startNode(gatewayArguments(), {
      SSH_SNAPSHOT: join(home, 'agent', 'ssh', 'gateway.json'),
      SSH_HOST: '127.0.0.1',
      SSH_LOG_LEVEL: 'error',
      SSH_EXIT_WITH_PARENT: 'true',
    });
    return started.process;
  }

  async function readyPod(id: string, wanted: (view: PodView) => boolean = isReady) {
    return eventually(`pod ${id} ready`, async () => {
      const view = await agent.client.getPod(id);
      if (view.phase === 'failed') throw new Error(view.message);
      return wanted(view) && view;
    });
  }

  /** OpenSSH options for `port` that ignore the user's configuration. */
  function options(port: number, identity = key): string[] {
    const settings = {
      BatchMode: 'yes',
      IdentitiesOnly: 'yes',
      IdentityAgent: 'none',
      IdentityFile: identity.file,
      StrictHostKeyChecking: 'accept-new',
      UserKnownHostsFile: join(home, 'known_hosts'),
      LogLevel: 'ERROR',
      ConnectTimeout: '10',
      Port: String(port),
    };
    return [
      '-F',
      '/dev/null',
      ...Object.entries(settings).flatMap(([k, v]) => ['-o', `${k}=${v}`]),
    ];
  }

  const portOf = ({ ssh }: PodView): number => ssh?.port ?? 0;

  /** Ends the processes and removes their pods. */
  async function end(): Promise<void> {
    await Promise.all([ended(agent.child, 'SIGTERM'), ended(gateway, 'SIGTERM')]);
    const owner = { [LABELS.executor]: executorId };
    for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
    for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
    for (const { name } of await engine.listVolumes(owner)) await engine.removeVolume(name);
  }

  return {
    home,
    key,
    newKey,
    engine,
    client: () => agent.client,
    readyPod,
    options,
    portOf,
    async launch(change: Partial<PodSpecInput> = {}): Promise<PodView> {
      const id = systemRandom.uuid();
      const ports = { internal_ports: [22, 8000], ssh_public_keys: [key.publicKey] };
      await agent.client.putPod(id, podSpec({ ...ports, limits: LIMITS, ...change }));
      return readyPod(id, change.publish_own_sshd === true ? isRunning : isReady);
    },
    /** Runs a command with the OpenSSH client through any port. */
    sshTo: (port: number, args: readonly string[], identity = key) =>
      runClient('ssh', [...options(port, identity), 'root@127.0.0.1', ...args]),
    /** Starts the OpenSSH client without waiting for it. */
    spawnSsh: (view: PodView, args: readonly string[], identity = key) =>
      spawn('ssh', [...options(portOf(view), identity), 'root@127.0.0.1', ...args]),
    /** Runs a command in the pod with the OpenSSH client. */
    ssh: (view: PodView, args: readonly string[], input: string | Buffer = '', identity = key) =>
      runClient('ssh', [...options(portOf(view), identity), 'root@127.0.0.1', ...args], input),
    async killAgent(): Promise<void> {
      await ended(agent.child, 'SIGKILL');
    },
    async startAgentAgain(): Promise<void> {
      agent = await startAgent();
    },
    async restartGateway(): Promise<void> {
      await ended(gateway, 'SIGKILL');
      gateway = await startGateway();
    },
    /** Removes the pods and the agent's store, and starts the programs again in the same home. */
    async reinstall(): Promise<void> {
      await end();
      for (const file of [
        'agent.sqlite',
        'agent.sqlite-wal',
        'agent.sqlite-shm',
        'ssh/gateway.json',
      ]) {
        rmSync(join(home, 'agent', file), { force: true });
      }
      agent = await startAgent();
      gateway = await startGateway();
    },
    async stop(): Promise<void> {
      await end();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Runs a program and returns all of its output; kills the program when the test times out. */
export function runClient(
  program: string,
  args: readonly string[],
  input: string | Buffer = '',
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { signal: systemClock.deadline(50_000) });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.once('error', reject);
    child.once('close', (code) =>
      resolve({ code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() }),
    );
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

const isRunning = (view: PodView) => view.phase === 'running';
const isReady = (view: PodView) => isRunning(view) && view.ssh?.ready === true;

async function startNode(args: readonly string[], environment: Record<string, string>) {
  const process_ = spawn(process.execPath, args, {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, PATH: process.env['PATH'] ?? '', ...environment },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const message = await new Promise<unknown>((resolve, reject) => {
    process_.once('message', resolve);
    process_.once('exit', (code) => reject(new Error(`${args.at(-1)} ended with ${code}`)));
  });
  return { process: process_, message };
}

async function ended(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await exit;
}
