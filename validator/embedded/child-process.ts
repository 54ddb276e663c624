/** Supervises an agent or SSH gateway as a child process of `npm start`: restarts it as systemd would, and caps its log file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '#shared/runtime/clock.ts';
import { makeFolder } from '#shared/runtime/files.ts';
import type { Log } from '#shared/runtime/log.ts';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { lastErrorIn } from './last-error.ts';

export type SupervisedChild = {
  name: string;
  /** Current process id; changes with a restart. */
  pid(): number | null;
  /** True after the child has served for the first time. */
  hasServed(): boolean;
  /** Number of times in a row that the child ended soon after its start. */
  quickEnds(): number;
  /** Description of the child's last end, with its last error and the path of its log; null if it never ended. */
  lastEnd(): string | null;
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
  /** Called with the text of `lastEnd` when the child ends unexpectedly, once for equal ends in a row. */
  onEnd(description: string): void;
};

const RESTART_DELAYS_MS = [100, 500, 2_000, 5_000];
/** A child that ran this long is restarted without delay. */
const HEALTHY_AFTER_MS = 10_000;
const STOP_GRACE_MS = 12_000;
/** Time for the rest of the output to arrive after the child has ended. */
const OUTPUT_WITHIN_MS = 500;
/** Characters of output in which the last error is searched. */
const TAIL_CHARS = 8_192;

export function superviseChild(options: ChildOptions): SupervisedChild {
  const { name, clock, log } = options;
  const stopping = new AbortController();
  let child: ChildProcess | null = null;
  let quickEnds = 0;
  let hasServed = false;
  let lastEnd: string | null = null;

  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      const { exit, lastError } = await runOnce();
      if (stopping.signal.aborted) return;
      quickEnds = clock.monotonicMs() - startedMs > HEALTHY_AFTER_MS ? 0 : quickEnds + 1;
      log.warn({ child: name, exit }, 'child ended, restarting');
      const why = lastError === null ? '' : `: ${lastError}`;
      const end = `${exit}${why} (log: ${options.output.path})`;
      const isNew = quickEnds <= 1 || end !== lastEnd;
      lastEnd = end;
      if (isNew) options.onEnd(end);
      const delay = RESTART_DELAYS_MS[Math.min(quickEnds, RESTART_DELAYS_MS.length - 1)] ?? 0;
      await clock.sleep(delay, stopping.signal).catch(() => undefined);
    }
  }

  /** Resolves with how the process ended, and with the last error in its output. */
  function runOnce(): Promise<{ exit: string; lastError: string | null }> {
    let tail = '';
    const keep = (chunk: Buffer) => {
      options.output.write(chunk);
      tail = `${tail}${chunk}`.slice(-TAIL_CHARS);
    };
    return new Promise((resolve) => {
      const end = (exit: string) => resolve({ exit, lastError: lastErrorIn(tail) });
      const running = spawn(process.execPath, [...options.arguments], {
        env: { ...options.environment, NODE_COMPILE_CACHE: COMPILE_CACHE },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
        // A separate process group: Ctrl-C must not end agents that the shutdown still needs.
        detached: true,
      });
      child = running;
      running.stdout?.on('data', keep);
      running.stderr?.on('data', keep);
      running.on('message', () => {
        hasServed = true;
        if (running.pid !== undefined) options.onReady(running.pid);
      });
      running.on('error', (error) => end(error.message));
      running.on('exit', (code, signal) => {
        const exit = signal ?? `exit code ${code}`;
        // All output has arrived when 'close' is emitted, which a program that the child has left behind delays.
        running.on('close', () => end(exit));
        void clock.sleep(OUTPUT_WITHIN_MS).then(() => end(exit));
      });
    });
  }

  const ended = keepRunning();
  return {
    name,
    pid: () => child?.pid ?? null,
    hasServed: () => hasServed,
    quickEnds: () => quickEnds,
    lastEnd: () => lastEnd,
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
