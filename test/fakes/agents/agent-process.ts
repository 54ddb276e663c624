/** The agent as a process that trusts one key. Tests send it HTTP requests and kill it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AgentClient, createAgentClient } from '#shared/api/agent/agent-client.ts';
import { createSignedConnect, type SignedConnect } from '#shared/api/agent/connect.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { agentArguments, COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { openIdentity, selfSignedPin } from '#shared/signing/identity.ts';
import { createSignedFetch, type SignedFetch } from '#shared/signing/signed-fetch.ts';
import { signedHeaders } from '#shared/signing/signed-request.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createSecureTransport } from '#shared/tls/transport.ts';

export type AgentHome = {
  executorId: string;
  /** Starts an agent on this home. Only one may run at a time. Rejects when the process ends before it listens. */
  start(): Promise<AgentProcess>;
  /** Deletes the folder. The caller must stop the agent first. */
  remove(): void;
};

export type AgentProcess = {
  /** The agent's AGENT_HOME. */
  home: string;
  child: ChildProcess;
  client: AgentClient;
  /** Sends signed requests that the typed client does not cover. */
  send: SignedFetch;
  /** Opens signed WebSockets. */
  connect: SignedConnect;
  /** Returns the headers of one signed GET request. */
  signedHeaders(path: string): Promise<Record<string, string>>;
  /** Origin of the agent's listener. */
  origin: string;
  /** Resolves when the process has ended, for any reason. */
  exited: Promise<void>;
  /** Sends SIGKILL: the agent cleans nothing up. */
  kill(): Promise<void>;
  /** Sends SIGTERM, then SIGKILL after a grace period. */
  stop(): Promise<void>;
};

const STOP_WITHIN_MS = 15_000;
const SEED_BYTES = 32;

/**
 * Creates a home in a temporary folder. `environment` adds to the agent's variables; they default to plain HTTP; with
 * `AGENT_TLS: 'on'` the client pins the agent's key. `onLog` receives the agent's output.
 */
export function createAgentHome(
  environment: Record<string, string>,
  onLog?: (text: string) => void,
): AgentHome {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-agent-'));
  const executorId = systemRandom.uuid();
  const signer = createSigner(systemRandom.bytes(SEED_BYTES));
  fillCompileCache();
  return {
    executorId,
    remove: () => rmSync(folder, { recursive: true, force: true }),
    async start() {
      const child = spawn(process.execPath, agentArguments(), {
        env: {
          NODE_COMPILE_CACHE: COMPILE_CACHE,
          PATH: process.env['PATH'] ?? '',
          AGENT_EXECUTOR_ID: executorId,
          AGENT_HOME: folder,
          AGENT_HOST: '127.0.0.1',
          AGENT_TLS: 'off',
          AGENT_PORT: '0',
          AGENT_GPU: 'none',
          AGENT_LOG_LEVEL: 'fatal',
          AGENT_TRUSTED_KEYS: `${signer.hotkey}=validator-control`,
          AGENT_EXIT_WITH_PARENT: 'true',
          ...environment,
        },
        stdio: ['ignore', onLog === undefined ? 'inherit' : 'pipe', 'inherit', 'ipc'],
      });
      child.stdout?.on('data', (chunk: Buffer) => onLog?.(chunk.toString()));
      const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      const secure = environment['AGENT_TLS'] === 'on';
      const origin = `${secure ? 'https' : 'http'}://127.0.0.1:${await portOf(child)}`;
      const trust = secure ? selfSignedPin(openIdentity(folder, systemRandom).publicKey) : null;
      const caller = {
        baseUrl: origin,
        audience: executorId,
        signer,
        clock: systemClock,
        random: systemRandom,
        ...(trust === null
          ? {}
          : { transport: createSecureTransport({ trust, clock: systemClock }) }),
      };
      const send = createSignedFetch(caller);
      return {
        origin,
        connect: createSignedConnect(caller),
        signedHeaders(path) {
          const request = { method: 'GET', url: new URL(origin + path), body: '' };
          return signedHeaders(caller, { ...request, timestampMs: systemClock.now() });
        },
        home: folder,
        child,
        send,
        client: createAgentClient({ send, clock: systemClock }),
        exited,
        async kill() {
          child.kill('SIGKILL');
          await exited;
        },
        stop: () => stopGracefully(child, exited),
      };
    },
  };
}

/** Fills Node's compile cache, as `npm run agent` does before it starts the agent. */
function fillCompileCache(): void {
  execFileSync(process.execPath, agentArguments('--version'), {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE },
  });
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve((message as { port: number }).port));
    child.once('exit', (code, signal) => reject(new Error(`the agent ended: ${signal ?? code}`)));
  });
}

async function stopGracefully(child: ChildProcess, exited: Promise<void>): Promise<void> {
  child.kill('SIGTERM');
  const grace = new AbortController();
  const killer = systemClock
    .sleep(STOP_WITHIN_MS, grace.signal)
    .then(() => child.kill('SIGKILL'))
    .catch(() => undefined);
  await exited;
  grace.abort();
  await killer;
}
