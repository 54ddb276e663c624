/** Supervises one of our programs as a child process: restarts it as systemd would, and passes on its output. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from './clock.ts';
import { CONFIG_REFUSED, ConfigError } from './config.ts';
import type { Log } from './log.ts';
import { COMPILE_CACHE } from './node-process.ts';

export type SupervisedChild = {
  /** Current process id; changes with a restart. */
  pid(): number | null;
  /** Resolves when the child serves for the first time; rejects if it fails to start. */
  ready: Promise<void>;
  /** Resolves when the supervision has ended: after `stop`, or when the child is not started again. */
  ended: Promise<void>;
  /** Sends SIGTERM, then SIGKILL after a grace period. */
  stop(): Promise<void>;
};

export type ChildOptions = {
  name: string;
  /** Arguments of Node. The child sends an IPC message once it serves. */
  arguments: readonly string[];
  environment: Record<string, string>;
  output: ChildOutput;
  clock: Clock;
  log: Log;
  /** Called after each start that serves. */
  onReady(pid: number): void;
};

/** Receives what the child prints. `place` completes the message of a failed start: `its log: /path`. */
export type ChildOutput = { write(chunk: Uint8Array): void; place: string };

const RESTART_DELAYS_MS = [100, 500, 2_000, 5_000];
/** A child that ran this long is restarted without delay. */
const HEALTHY_AFTER_MS = 10_000;
const STOP_GRACE_MS = 12_000;
/** Attempts of the first start before it counts as failed. */
const FIRST_START_TRIES = 3;

/** End of a process. `isRefusal`: the process rejected its configuration, so a restart would not help. */
type Exit = { exit: string; isRefusal: boolean };

export function superviseChild(options: ChildOptions): SupervisedChild {
  const { name, clock, log } = options;
  const stopping = new AbortController();
  let child: ChildProcess | null = null;
  let quickDeaths = 0;
  let started = false;

  async function keepRunning(onFirstReady: () => void, onGivingUp: (error: Error) => void) {
    while (!stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      const { exit, isRefusal } = await runOnce(onFirstReady);
      if (stopping.signal.aborted) return;
      if (isRefusal) {
        log.error({ child: name, exit }, 'child rejects its configuration, not restarting');
        onGivingUp(new ConfigError(`${name} rejects its configuration; ${options.output.place}`));
        return;
      }
      quickDeaths = clock.monotonicMs() - startedMs > HEALTHY_AFTER_MS ? 0 : quickDeaths + 1;
      log.warn({ child: name, exit }, 'child ended, restarting');
      if (!started && quickDeaths >= FIRST_START_TRIES) {
        onGivingUp(new Error(`${name} does not start (${exit}); ${options.output.place}`));
        return;
      }
      const delay = RESTART_DELAYS_MS[Math.min(quickDeaths, RESTART_DELAYS_MS.length - 1)] ?? 0;
      await clock.sleep(delay, stopping.signal).catch(() => undefined);
    }
  }

  /** Resolves with a description of how the process ended. */
  function runOnce(onFirstReady: () => void): Promise<Exit> {
    return new Promise((resolve) => {
      const running = spawn(process.execPath, [...options.arguments], {
        env: { ...options.environment, NODE_COMPILE_CACHE: COMPILE_CACHE },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
        // A separate process group: Ctrl-C must not end agents that the shutdown still needs.
        detached: true,
      });
      child = running;
      running.stdout?.on('data', (chunk: Buffer) => options.output.write(chunk));
      running.stderr?.on('data', (chunk: Buffer) => options.output.write(chunk));
      running.on('message', () => {
        started = true;
        if (running.pid !== undefined) options.onReady(running.pid);
        onFirstReady();
      });
      running.on('error', (error) => resolve({ exit: error.message, isRefusal: false }));
      running.on('exit', (code, signal) =>
        resolve({ exit: signal ?? `exit code ${code}`, isRefusal: code === CONFIG_REFUSED }),
      );
    });
  }

  let ended: Promise<void> = Promise.resolve();
  const ready = new Promise<void>((resolve, reject) => {
    ended = keepRunning(resolve, reject);
  });

  return {
    ready,
    ended,
    pid: () => child?.pid ?? null,
    async stop() {
      stopping.abort();
      child?.kill('SIGTERM');
      const grace = new AbortController();
      const killer = clock
        .sleep(STOP_GRACE_MS, grace.signal)
        .then(() => child?.kill('SIGKILL'))
        .catch(() => undefined);
      await ended;
      grace.abort();
      await killer;
    },
  };
}
