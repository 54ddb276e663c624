/** Runs the program of `npm start` as a real process on free ports, in a new folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import type { DemoFile } from '../../validator/embedded/demo-file.ts';
import { eventually } from '../fakes/eventually.ts';

export type MarketplaceProcess = {
  home: string;
  /** Reads the current content of demo.json: pids change when an agent is restarted. */
  demo(): DemoFile;
  /** Output of the process so far. */
  output(): string;
  child: ChildProcess;
  /** Sends SIGINT as a terminal does for Ctrl-C through npm. */
  interrupt(): void;
  /** Sends the signal and resolves with the exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
};

const MAIN = new URL('../../validator/embedded/main.ts', import.meta.url).pathname;
const READY_WITHIN_MS = 240_000;
const END_WITHIN_MS = 60_000;

/** Creates a folder below the system's temporary one. */
export function temporaryHome(): string {
  return mkdtempSync(join(tmpdir(), 'podwright-test-'));
}

export function removeHome(home: string): void {
  rmSync(home, { recursive: true, force: true });
}

/** Returns free ports as flags: a restart on the same home must use the same ports. */
export async function freePortFlags(): Promise<string[]> {
  const [central, validator, agents, metrics, pods] = await freePorts();
  return [
    ['--port', central],
    ['--validator-port', validator],
    ['--agent-port', agents],
    ['--metrics-port', metrics],
    ['--pod-ports', pods],
  ].flatMap(([flag, port]) => [String(flag), String(port)]);
}

/** Resolves once the ready block was printed; rejects with the output otherwise. */
export async function startMarketplaceProcess(
  home: string,
  flags: readonly string[],
  environment: Record<string, string> = {},
): Promise<MarketplaceProcess> {
  const child = spawn(process.execPath, [MAIN, '--home', home, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
    // A separate process group, as a shell creates it: `interrupt` signals the whole group, as a terminal does for
    // Ctrl-C.
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let ended = false;
  void exited.then(() => {
    ended = true;
  });
  /** Sends the signal and resolves with the exit code. */
  async function end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (!ended) child.kill(signal);
    const tooLate = new AbortController();
    void systemClock
      .sleep(END_WITHIN_MS, tooLate.signal)
      .then(() => child.kill('SIGKILL'))
      .catch(() => undefined);
    const code = await exited;
    tooLate.abort();
    return code;
  }
  try {
    await eventually(
      'ready block',
      () => {
        if (ended) throw new Error(`ended early:\n${output}`);
        return output.includes('Podwright is ready');
      },
      READY_WITHIN_MS,
    );
  } catch (error) {
    await end();
    throw error;
  }
  return {
    home,
    child,
    demo: () => JSON.parse(readFileSync(join(home, 'demo.json'), 'utf8')),
    output: () => output,
    interrupt() {
      // npm forwards the terminal's signal to its child, so the child receives it twice.
      process.kill(-(child.pid ?? 0), 'SIGINT');
      child.kill('SIGINT');
    },
    end,
  };
}

/** Returns ports below the ephemeral range, so that no outgoing connection takes them before the process listens. */
async function freePorts(): Promise<number[]> {
  const base = 10_000 + (process.pid % 80) * 100;
  const found: number[] = [];
  for (let port = base; found.length < 4; port += 10) {
    if (await isFree(port)) found.push(port);
  }
  return [...found, 20_000 + (process.pid % 24) * 500];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
