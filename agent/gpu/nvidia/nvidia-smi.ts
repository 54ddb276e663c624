/** Runs nvidia-smi so that a wedged driver can neither block the agent nor pile up processes. */
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { CommandResult, RunCommand } from '#shared/runtime/run-command.ts';

export type SmiOutput = {
  /** Whatever was printed, also by a run that failed: data beside a warning is still data. */
  stdout: string;
  /** The run ended by itself, so nothing is missing at the end of `stdout`. */
  complete: boolean;
  /** What went wrong, in words; null after exit status 0. */
  problem: string | null;
  /** Null for a run that did not begin, or did not end by itself. */
  exitCode: number | null;
};

export type NvidiaSmi = {
  /** Never rejects. One run at a time; callers with the same arguments share a run. */
  run(args: readonly string[]): Promise<SmiOutput>;
};

export type NvidiaSmiOptions = {
  clock: Clock;
  runCommand: RunCommand;
  /** Name on PATH, or path; `nvidia-smi` when absent. */
  program?: string;
  /** The process's own environment when absent. */
  env?: Record<string, string>;
  /** For tests. */
  timeoutMs?: number;
  /** Called for each run that had to be killed. */
  onHang?(): void;
};

const PROGRAM = 'nvidia-smi';
const TIMEOUT_MS = 10_000;
/** From SIGKILL until we stop waiting: a process stuck inside the driver does not even die of that. */
const KILL_GRACE_MS = 1_000;
/** After a run that hung none begins for so long; twice as long after each further one in a row, up to the longest. */
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 300_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const MAX_PROBLEM_CHARS = 300;

/** How the problem begins when there is no such program. */
export const PROGRAM_MISSING = 'nvidia-smi could not be started';

export function createNvidiaSmi(options: NvidiaSmiOptions): NvidiaSmi {
  const { clock, runCommand, program = PROGRAM, timeoutMs = TIMEOUT_MS } = options;
  const underWay = new Map<string, Promise<SmiOutput>>();
  let queue: Promise<unknown> = Promise.resolve();
  let unkillable = false;
  let pauseMs = 0;
  let pausedUntilMs = 0;

  function noteHang(): void {
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs === 0 ? FIRST_PAUSE_MS : 2 * pauseMs);
    pausedUntilMs = clock.monotonicMs() + pauseMs;
    options.onHang?.();
  }

  async function runOnce(args: readonly string[]): Promise<SmiOutput> {
    if (unkillable) return nothing('an earlier nvidia-smi run still hangs in the driver');
    if (clock.monotonicMs() < pausedUntilMs) {
      return nothing(`nvidia-smi did not end within ${timeoutMs} ms, and is left alone for now`);
    }
    const env = options.env === undefined ? {} : { env: options.env };
    const limits = { timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES, ...env };
    const finished = runCommand(program, args, limits)
      .then((result) => {
        if (result.ended !== 'timeout') pauseMs = 0;
        else if (!unkillable) noteHang();
        return outputOf(result, timeoutMs);
      })
      .catch((error: unknown) => nothing(`${PROGRAM_MISSING}: ${messageOf(error)}`));
    return withDeadline(clock, timeoutMs + KILL_GRACE_MS, finished).catch(() => {
      unkillable = true;
      noteHang();
      void finished.then(() => {
        unkillable = false;
      });
      return nothing(`nvidia-smi did not end within ${timeoutMs} ms and cannot be killed`);
    });
  }

  return {
    run(args) {
      const key = args.join(' ');
      const shared = underWay.get(key);
      if (shared !== undefined) return shared;
      const output = queue.then(() => runOnce(args)).finally(() => underWay.delete(key));
      underWay.set(key, output);
      queue = output;
      return output;
    },
  };
}

function nothing(problem: string): SmiOutput {
  return { stdout: '', complete: false, problem, exitCode: null };
}

function outputOf(result: CommandResult, timeoutMs: number): SmiOutput {
  const { stdout, ended, exitCode } = result;
  return { stdout, complete: ended === null, problem: problemOf(), exitCode };

  function problemOf(): string | null {
    if (ended === 'timeout') return `nvidia-smi did not end within ${timeoutMs} ms`;
    if (ended === 'output_limit') return `nvidia-smi printed more than ${MAX_OUTPUT_BYTES} bytes`;
    if (exitCode === 0) return null;
    const how = exitCode === null ? 'was killed' : `exited with status ${exitCode}`;
    const words = result.stderr.trim().split('\n', 1)[0] ?? '';
    return `nvidia-smi ${how}${words === '' ? '' : `: ${words.slice(0, MAX_PROBLEM_CHARS)}`}`;
  }
}
