/** Supervises one of our programs as a child process: restarts it as systemd would, and passes on its output. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from './clock.ts';
import { CONFIG_REFUSED, ConfigError } from './config.ts';
import { lastErrorIn } from './last-error.ts';
import type { Log } from './log.ts';
import { COMPILE_CACHE } from './node-process.ts';

export type SupervisedChild = {
  name: string;
  /** Current process id; changes with a restart. */
  pid(): number | null;
  /** True after the child has served for the first time. */
  hasServed(): boolean;
  /** Returns why the child does not start: ConfigError if it rejects its configuration. Null while it may still start. */
  startFailure(): Error | null;
  /** Resolves when the supervision has ended: after `stop`, or when the child rejects its configuration. */
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
  /**
   * Called when the child ends unexpectedly, once for equal ends in a row, with its exit status, its last error and the
   * place of its output.
   */
  onEnd(description: string): void;
};

/** Receives what the child prints. `place` states where a reader finds it: `log: /path`. */
export type ChildOutput = { write(chunk: Uint8Array): void; place: string };

const RESTART_DELAYS_MS = [100, 500, 2_000, 5_000];
/** A child that ran this long is restarted after the shortest delay. */
const HEALTHY_AFTER_MS = 10_000;
const STOP_GRACE_MS = 12_000;
/**
 * Number of consecutive ends, each within HEALTHY_AFTER_MS of the start, after which the start counts as
 * failed.
 */
const MAX_QUICK_ENDS = 3;
/** Time for the rest of the output to arrive after the child has ended. */
const OUTPUT_WITHIN_MS = 500;
/** Characters of output in which the last error is searched. */
const TAIL_CHARS = 8_192;

/** End of a process. `isRefusal`: the process rejected its configuration, so a restart would not help. */
type End = { exit: string; isRefusal: boolean; lastError: string | null };

export function superviseChild(options: ChildOptions): SupervisedChild {
  const { name, clock, log } = options;
  const stopping = new AbortController();
  let child: ChildProcess | null = null;
  let quickEnds = 0;
  let hasServed = false;
  let lastEnd = '';
  let isRefused = false;

  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      const { exit, isRefusal, lastError } = await runOnce();
      if (stopping.signal.aborted) return;
      quickEnds = clock.monotonicMs() - startedMs > HEALTHY_AFTER_MS ? 0 : quickEnds + 1;
      const why = lastError === null ? '' : `: ${lastError}`;
      const end = `${exit}${why} (${options.output.place})`;
      const isNew = quickEnds <= 1 || end !== lastEnd;
      lastEnd = end;
      if (isNew) options.onEnd(end);
      isRefused = isRefusal;
      if (isRefused) {
        log.error({ child: name, exit }, 'child rejects its configuration, not restarting');
        return;
      }
      log.warn({ child: name, exit }, 'child ended, restarting');
      const delay = RESTART_DELAYS_MS[Math.min(quickEnds, RESTART_DELAYS_MS.length - 1)] ?? 0;
      await clock.sleep(delay, stopping.signal).catch(() => undefined);
    }
  }

  /** Resolves with how the process ended, and with the last error in its output. */
  function runOnce(): Promise<End> {
    let tail = '';
    const keep = (chunk: Buffer) => {
      options.output.write(chunk);
      tail = `${tail}${chunk}`.slice(-TAIL_CHARS);
    };
    return new Promise((resolve) => {
      const end = (exit: string, isRefusal = false) =>
        resolve({ exit, isRefusal, lastError: lastErrorIn(tail) });
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
        const isRefusal = code === CONFIG_REFUSED;
        // All output has arrived when 'close' is emitted, which a program that the child has left behind delays.
        running.on('close', () => end(exit, isRefusal));
        void clock.sleep(OUTPUT_WITHIN_MS).then(() => end(exit, isRefusal));
      });
    });
  }

  const ended = keepRunning();
  return {
    name,
    ended,
    pid: () => child?.pid ?? null,
    hasServed: () => hasServed,
    startFailure() {
      if (isRefused) return new ConfigError(`${name} rejects its configuration: ${lastEnd}`);
      if (quickEnds < MAX_QUICK_ENDS) return null;
      return new Error(`${name} ended ${quickEnds} times in a row: ${lastEnd}`);
    },
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
