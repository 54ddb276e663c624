/** `npm run host` as a process, in a home that ends with the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agentArguments, COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';

/** Timeout in milliseconds of everything that waits for these processes. */
export const HOST_WITHIN_MS = 120_000;

export type HostHome = ReturnType<typeof createHostHome>;

/** The caller must call `close()`, which ends the process that `start` has started last. */
export function createHostHome() {
  const home = mkdtempSync(join(tmpdir(), 'podwright-host-'));
  let running: ChildProcess | null = null;

  async function start(variables: Record<string, string> = {}) {
    const { first: port } = await freePorts(10);
    const child = spawn(process.execPath, agentArguments('host'), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        AGENT_EXECUTOR_ID: systemRandom.uuid(),
        AGENT_HOME: home,
        AGENT_HOST: '127.0.0.1',
        AGENT_PORT: String(port),
        AGENT_PORT_RANGE: `${port + 1}-${port + 9}`,
        AGENT_TLS: 'off',
        AGENT_GPU: 'none',
        ...variables,
      },
    });
    running = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8');
      });
    const lines = () => output.split('\n').filter((line) => line !== '');
    const pids = (name: string) => [
      ...output.matchAll(
        new RegExp(`^host  .*"child":"${name}","pid":(\\d+),"msg":"serving"`, 'gm'),
      ),
    ];
    return {
      child,
      port,
      lines,
      /** Resolves with the process id of a child that has served `times` times. */
      pidOf: async (name: string, times = 1) => {
        const serves = () => pids(name).length >= times || child.exitCode !== null;
        await eventually(`${name} serves`, serves, HOST_WITHIN_MS);
        const [, pid] = pids(name)[times - 1] ?? [];
        if (pid === undefined) throw new Error(output);
        return Number(pid);
      },
    };
  }

  return {
    start,
    async close(): Promise<void> {
      if (running !== null) await endOf(running, 'SIGTERM');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Sends the signal, if there is one, and resolves with the exit status when the process has ended. */
export async function endOf(child: ChildProcess, signal?: NodeJS.Signals): Promise<number | null> {
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  if (signal !== undefined && !ended()) child.kill(signal);
  await eventually('the end of the process', ended, HOST_WITHIN_MS);
  return child.exitCode;
}

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
