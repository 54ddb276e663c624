/** An agent as a process of its own, with one trusted key, for measuring from outside. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AgentClient, createAgentClient } from '#shared/agent-api/agent-client.ts';
import { systemClock } from '#shared/clock.ts';
import { agentArguments, COMPILE_CACHE } from '#shared/node-launch.ts';
import { systemRandom } from '#shared/random.ts';
import { createSignedFetch, type SignedFetch } from '#shared/signing/signed-fetch.ts';
import { createSigner } from '#shared/signing/sr25519.ts';

export type BenchAgent = {
  executorId: string;
  child: ChildProcess;
  client: AgentClient;
  /** Signed requests, for answers that are not to be parsed. */
  send: SignedFetch;
  stop(): Promise<void>;
};

const STOP_WITHIN_MS = 15_000;

/** What `npm run agent` and the marketplace do before a start. */
function warmCompileCache(): void {
  execFileSync(process.execPath, agentArguments('--version'), {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE },
  });
}

/** `podPorts` as AGENT_PORT_RANGE takes them. Rejects when the agent ends before it listens. */
export async function startBenchAgent(podPorts: string): Promise<BenchAgent> {
  const home = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const executorId = systemRandom.uuid();
  const signer = createSigner(systemRandom.bytes(32));
  warmCompileCache();
  const child = spawn(process.execPath, agentArguments(), {
    env: {
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      PATH: process.env['PATH'] ?? '',
      AGENT_EXECUTOR_ID: executorId,
      AGENT_HOME: home,
      AGENT_HOST: '127.0.0.1',
      AGENT_PORT: '0',
      AGENT_PORT_RANGE: podPorts,
      AGENT_GPU: 'none',
      AGENT_LOG_LEVEL: 'warn',
      AGENT_TRUSTED_KEYS: `${signer.hotkey}=validator-control`,
      AGENT_EXIT_WITH_PARENT: 'true',
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve((message as { port: number }).port));
    child.once('exit', (code) => reject(new Error(`the agent ended with ${code}`)));
  });
  const send = createSignedFetch({
    baseUrl: `http://127.0.0.1:${port}`,
    audience: executorId,
    signer,
    clock: systemClock,
    random: systemRandom,
  });
  return {
    executorId,
    child,
    send,
    client: createAgentClient({ send, clock: systemClock }),
    async stop() {
      child.kill('SIGTERM');
      const grace = new AbortController();
      void systemClock
        .sleep(STOP_WITHIN_MS, grace.signal)
        .then(() => child.kill('SIGKILL'))
        .catch(() => undefined);
      await exited;
      grace.abort();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
