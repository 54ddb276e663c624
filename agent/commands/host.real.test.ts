/** `npm run host` as a real process, with the real agent and gateway. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';

const LONG_MS = 120_000;

let home: string;
let running: ChildProcess | null = null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'podwright-host-'));
});
afterEach(async () => {
  if (running !== null) await endOf(running, 'SIGTERM');
  rmSync(home, { recursive: true, force: true });
});

async function start(variables: Record<string, string> = {}) {
  const { first: port } = await freePorts(10);
  const child = spawn(process.execPath, agentArguments('host'), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
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
    ...output.matchAll(new RegExp(`^host  .*"child":"${name}","pid":(\\d+),"msg":"serving"`, 'gm')),
  ];
  return {
    child,
    port,
    lines,
    /** Resolves with the process id of a child that has served `times` times. */
    pidOf: async (name: string, times = 1) => {
      const serves = () => pids(name).length >= times || child.exitCode !== null;
      await eventually(`${name} serves`, serves, LONG_MS);
      const [, pid] = pids(name)[times - 1] ?? [];
      if (pid === undefined) throw new Error(output);
      return Number(pid);
    },
  };
}

async function endOf(child: ChildProcess, signal?: NodeJS.Signals): Promise<number | null> {
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  if (signal !== undefined && !ended()) child.kill(signal);
  await eventually('the end of the process', ended, LONG_MS);
  return child.exitCode;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it(
  'runs agent and gateway, restarts the one that ends, and ends both on Ctrl-C',
  async () => {
    const host = await start();
    const [agent, ssh] = [await host.pidOf('agent'), await host.pidOf('ssh')];
    process.kill(agent, 'SIGKILL');
    const next = await host.pidOf('agent', 2);
    expect(next).not.toBe(agent);
    process.kill(ssh, 'SIGKILL');
    const nextSsh = await host.pidOf('ssh', 2);
    expect(isRunning(next)).toBe(true);
    const answer = await fetch(`http://127.0.0.1:${host.port}/healthz`);
    expect(answer.status).toBe(200);
    // npm forwards the signal that the terminal has already sent.
    host.child.kill('SIGINT');
    host.child.kill('SIGINT');
    expect(await endOf(host.child)).toBe(0);
    expect([next, nextSsh].filter(isRunning)).toEqual([]);
    const names = new Set(host.lines().map((line) => line.slice(0, 8)));
    expect([...names].toSorted()).toEqual(['agent | ', 'host  | ', 'ssh   | ']);
  },
  LONG_MS,
);

it(
  'ends both when it is killed',
  async () => {
    const host = await start();
    const pids = [await host.pidOf('agent'), await host.pidOf('ssh')];
    host.child.kill('SIGKILL');
    await eventually('the end of both', () => pids.filter(isRunning).length === 0, LONG_MS);
  },
  LONG_MS,
);

it('reports a port in use before it starts anything', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? String(address?.port) : '';
  const host = await start({ AGENT_METRICS_LISTEN: `127.0.0.1:${port}` });
  expect(await endOf(host.child)).toBe(1);
  expect(host.lines()).toEqual([
    `podwright-agent: port ${port} on 127.0.0.1 is in use: stop the process that uses it, or choose another with AGENT_METRICS_LISTEN`,
  ]);
  server.close();
});

it('reports the invalid variables of both processes at once', async () => {
  const host = await start({ AGENT_PORT: 'x', SSH_LOG_LEVEL: 'loud' });
  expect(await endOf(host.child)).toBe(6);
  expect(host.lines().join('\n')).toMatch(/AGENT_PORT \("x"\).*SSH_LOG_LEVEL \("loud"\)/s);
});

it(
  'ends both if one does not start, with the name of that one',
  async () => {
    const host = await start({ AGENT_HOME: '/proc/none' });
    expect(await endOf(host.child)).toBe(6);
    expect(host.lines().join('\n')).toMatch(
      /(?:agent|ssh) rejects its configuration: exit code 6: .*\(its messages begin with "(?:agent|ssh) \|"\)/s,
    );
  },
  LONG_MS,
);
