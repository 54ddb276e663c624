/** Supervises an agent or SSH gateway as a child process of `npm start`: restarts it as systemd would, and caps its log file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '#shared/runtime/clock.ts';
import { makeFolder } from '#shared/runtime/files.ts';
import type { Log } from '#shared/runtime/log.ts';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';

export type SupervisedChild = {
  /** Current process id; changes with a restart. */
  pid(): number | null;
  /** Resolves when the child serves for the first time; rejects if it fails to start. */
  ready: Promise<void>;
  /** Sends SIGTERM, then SIGKILL after a grace period. */
  stop(): Promise<void>;
};

export type ChildOptions = {
  name: string;
  /** Arguments of Node. The child sends an IPC message once it serves. */
  arguments: readonly string[];
  environment: Record<string, string>;
  output: CappedFile;
  clock: Clock;
  log: Log;
  /** Called after each start that serves. */
  onReady(pid: number): void;
};

const RESTART_DELAYS_MS = [100, 500, 2_000, 5_000];
/** A child that ran this long is restarted without delay. */
const HEALTHY_AFTER_MS = 10_000;
const STOP_GRACE_MS = 12_000;
/** Attempts of the first start before it counts as failed. */
const FIRST_START_TRIES = 3;

export function superviseChild(options: ChildOptions): SupervisedChild {
  const { name, clock, log } = options;
  const stopping = new AbortController();
  let child: ChildProcess | null = null;
  let quickDeaths = 0;
  let started = false;

  async function keepRunning(onFirstReady: () => void, onGivingUp: (error: Error) => void) {
    while (!stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      const exit = await runOnce(onFirstReady);
      if (stopping.signal.aborted) return;
      quickDeaths = clock.monotonicMs() - startedMs > HEALTHY_AFTER_MS ? 0 : quickDeaths + 1;
      log.warn({ child: name, exit }, 'child ended, restarting');
      if (!started && quickDeaths >= FIRST_START_TRIES) {
        onGivingUp(new Error(`${name} does not start (${exit}); its log: ${options.output.path}`));
        return;
      }
      const delay = RESTART_DELAYS_MS[Math.min(quickDeaths, RESTART_DELAYS_MS.length - 1)] ?? 0;
      await clock.sleep(delay, stopping.signal).catch(() => undefined);
    }
  }

  /** Resolves with a description of how the process ended. */
  function runOnce(onFirstReady: () => void): Promise<string> {
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
      running.on('error', (error) => resolve(error.message));
      running.on('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
  }

  let ended: Promise<void> = Promise.resolve();
  const ready = new Promise<void>((resolve, reject) => {
    ended = keepRunning(resolve, reject);
  });

  return {
    ready,
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

export type CappedFile = { path: string; write(chunk: Uint8Array | string): void };

const MAX_BYTES = 10 * 1024 * 1024;

/** Append-only file that rotates to `<path>.1`, at most 20 MiB together. A full disk loses log lines only. */
export function createCappedFile(path: string): CappedFile {
  makeFolder(dirname(path));
  let size = sizeOf(path);
  return {
    path,
    write(chunk) {
      try {
        if (size > MAX_BYTES) {
          renameSync(path, `${path}.1`);
          size = 0;
        }
        appendFileSync(path, chunk, { mode: 0o600 });
        size += chunk.length;
      } catch {
        size = sizeOf(path);
      }
    },
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
