/** Programs of the marketplace under chaos: each can be killed, started slowly, and given a wrong clock. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { eventually } from '../fakes/eventually.ts';
import { type HostFaults, NO_FAULTS } from '../fakes/faults/wrong-clock.ts';

const PRELOAD = new URL('../fakes/faults/wrong-clock.ts', import.meta.url).href;
/** Time limit of a start, including the longest delay of a slow start, on a busy host. */
const READY_WITHIN_MS = 180_000;
const STOPS_WITHIN_MS = 20_000;

export type ServicePlan = {
  name: string;
  /** Arguments of Node. */
  arguments: readonly string[];
  environment: Record<string, string>;
  /** Text that the program prints when it serves; null: it sends an IPC message. */
  ready: string | null;
};

export type Service = Awaited<ReturnType<typeof createService>>;

/** Creates a service that is not started. Its output is written to a file in `folder`. */
export function createService(folder: string, plan: ServicePlan) {
  const faultFile = join(folder, `${plan.name}.faults.json`);
  const log = createWriteStream(join(folder, `${plan.name}.log`), { flags: 'w' });
  let faults = NO_FAULTS;
  let child: ChildProcess | null = null;

  /** Replaces the file with one rename, because the program may read it at any time. */
  function setFaults(change: Partial<HostFaults>): void {
    faults = { ...faults, ...change };
    writeFileSync(`${faultFile}.new`, JSON.stringify(faults));
    renameSync(`${faultFile}.new`, faultFile);
  }

  /** Resolves when the program serves. */
  async function start(): Promise<void> {
    const { PATH = '' } = process.env;
    const started = spawn(process.execPath, [...plan.arguments], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        PATH,
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        NODE_OPTIONS: `--import ${PRELOAD}`,
        PODWRIGHT_TEST_FAULTS: faultFile,
        ...plan.environment,
      },
    });
    child = started;
    let isReady = false;
    let text = '';
    started.once('message', () => {
      if (plan.ready === null) isReady = true;
    });
    for (const stream of [started.stdout, started.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        log.write(chunk);
        if (isReady || plan.ready === null) return;
        text += chunk.toString();
        isReady = text.includes(plan.ready);
      });
    }
    const isServing = () => {
      if (hasEnded(started)) throw new Error(`${plan.name} ended at its start: ${text}`);
      return isReady;
    };
    await eventually(`${plan.name} serves`, isServing, READY_WITHIN_MS);
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = child;
    if (ending === null || hasEnded(ending)) return;
    const ended = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    const grace = new AbortController();
    const killer = systemClock
      .sleep(STOPS_WITHIN_MS, grace.signal)
      .then(() => ending.kill('SIGKILL'))
      .catch(() => undefined);
    await ended;
    grace.abort();
    await killer;
  }

  setFaults({});
  return {
    name: plan.name,
    start,
    setFaults,
    pid: () => (child === null || hasEnded(child) ? null : (child.pid ?? null)),
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
