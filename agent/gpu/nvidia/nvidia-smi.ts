/** Runs nvidia-smi so that a hanging driver can neither block the agent nor accumulate processes. */
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { CommandResult, RunCommand } from '#shared/runtime/run-command.ts';

export type SmiOutput = {
  /** Output, also of a failed run: it may contain data beside a warning. */
  stdout: string;
  /** True if the program exited by itself, so that `stdout` is complete. */
  complete: boolean;
  /** Error message; null after exit status 0. */
  problem: string | null;
  /** Null for a run that did not start or was killed. */
  exitCode: number | null;
};

export type NvidiaSmi = {
  /** Never rejects. Runs are serialized; concurrent callers with the same arguments share a run. */
  run(args: readonly string[]): Promise<SmiOutput>;
};

export type NvidiaSmiOptions = {
  clock: Clock;
  runCommand: RunCommand;
  /** Name of the program on PATH, or its path. Default: `nvidia-smi`. */
  program?: string;
  /** Default: the environment of this process. */
  env?: Record<string, string>;
  /** Default: 10 s. */
  timeoutMs?: number;
  /** Called for each run that was killed after its timeout. */
  onHang?(): void;
};

const PROGRAM = 'nvidia-smi';
const TIMEOUT_MS = 10_000;
/** Maximum wait for the exit after SIGKILL; a process stuck inside the driver survives even SIGKILL. */
const KILL_GRACE_MS = 1_000;
/** Pause after a run that hung; doubled after each consecutive hang, up to the maximum. */
const FIRST_PAUSE_MS = 10_000;
const MAX_PAUSE_MS = 300_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_PROBLEM_CHARS = 300;

/** Prefix of `problem` if the program does not exist. */
export const PROGRAM_MISSING = 'nvidia-smi could not be started';
/** Prefix of `problem` if the program was ended because its output was too long. */
export const OUTPUT_TOO_LONG = 'nvidia-smi printed more than';

export function createNvidiaSmi(options: NvidiaSmiOptions): NvidiaSmi {
  const { clock, runCommand, program = PROGRAM, timeoutMs = TIMEOUT_MS } = options;
  const running = new Map<string, Promise<SmiOutput>>();
  let queue: Promise<unknown> = Promise.resolve();
  let unkillable = false;
  let pauseMs = 0;
  let pausedUntilMs = 0;

  function recordHang(): void {
    pauseMs = Math.min(MAX_PAUSE_MS, pauseMs === 0 ? FIRST_PAUSE_MS : 2 * pauseMs);
    pausedUntilMs = clock.monotonicMs() + pauseMs;
    options.onHang?.();
  }

  async function runOnce(args: readonly string[]): Promise<SmiOutput> {
    if (unkillable) return failedRun('an earlier nvidia-smi run still hangs in the driver');
    if (clock.monotonicMs() < pausedUntilMs) {
      return failedRun(`nvidia-smi did not end within ${timeoutMs} ms, and is paused for now`);
    }
    const env = options.env === undefined ? {} : { env: options.env };
    const limits = { timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES, ...env };
    const finished = runCommand(program, args, limits)
      .then((result) => {
        if (result.ended !== 'timeout') pauseMs = 0;
        else if (!unkillable) recordHang();
        return outputOf(result, timeoutMs);
      })
      .catch((error: unknown) => failedRun(`${PROGRAM_MISSING}: ${messageOf(error)}`));
    return withDeadline(clock, timeoutMs + KILL_GRACE_MS, finished).catch(() => {
      unkillable = true;
      recordHang();
      void finished.then(() => {
        unkillable = false;
      });
      return failedRun(`nvidia-smi did not end within ${timeoutMs} ms and cannot be killed`);
    });
  }

  return {
    run(args) {
      const key = args.join(' ');
      const shared = running.get(key);
      if (shared !== undefined) return shared;
      const output = queue.then(() => runOnce(args)).finally(() => running.delete(key));
      running.set(key, output);
      queue = output;
      return output;
    },
  };
}

function failedRun(problem: string): SmiOutput {
  return { stdout: '', complete: false, problem, exitCode: null };
}

function outputOf(result: CommandResult, timeoutMs: number): SmiOutput {
  const { stdout, ended, exitCode } = result;
  return { stdout, complete: ended === null, problem: problemOf(), exitCode };

  function problemOf(): string | null {
    if (ended === 'timeout') return `nvidia-smi did not end within ${timeoutMs} ms`;
    if (ended === 'output_limit') return `${OUTPUT_TOO_LONG} ${MAX_OUTPUT_BYTES} bytes`;
    if (exitCode === 0) return null;
    const how = exitCode === null ? 'was killed' : `exited with status ${exitCode}`;
    const words = result.stderr.trim().split('\n', 1)[0] ?? '';
    return `nvidia-smi ${how}${words === '' ? '' : `: ${words.slice(0, MAX_PROBLEM_CHARS)}`}`;
  }
}
