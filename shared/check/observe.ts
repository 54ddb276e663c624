/** Facts that may be unavailable. A check receives either the value or the reason why there is none. */
import { type Clock, DeadlineError, isTimeout, withDeadline } from '../runtime/clock.ts';
import { messageOf } from '../runtime/errors.ts';
import type { CommandResult } from '../runtime/run-command.ts';
import type { Problem } from './check.ts';

export type Observed<T> = { value: T } | Problem;

/** Runs `work` for at most `ms` milliseconds. Never rejects: an error or a timeout becomes `problem`. */
export async function observe<T>(
  clock: Clock,
  ms: number,
  work: () => Promise<T>,
): Promise<Observed<T>> {
  try {
    return { value: await withDeadline(clock, ms, work()) };
  } catch (error) {
    return problemOf(error);
  }
}

export function problemOf(error: unknown): Problem {
  const problem = messageOf(error);
  return isTimeout(error) ? { problem, timedOut: true } : { problem };
}

/** Returns the standard output of a command. Throws if the command did not end with exit status 0. */
export function outputOf(program: string, result: CommandResult): string {
  const { exitCode, stdout, stderr, ended } = result;
  if (exitCode === 0) return stdout;
  if (ended === 'timeout') throw new DeadlineError(`${program} did not end in time`);
  throw new Error(stderr.trim() || ended || `${program}: exit status ${exitCode}`);
}

export function valueOrNull<T>(observed: Observed<T>): T | null {
  return 'value' in observed ? observed.value : null;
}
