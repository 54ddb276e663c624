/** Restart backoff of pods: 1 s, doubling to 5 min, with full jitter. Pure. */
import type { ReasonCode } from '#shared/api/agent/pod.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { ContainerState } from '../containers/engine/engine.ts';
import { isLaunchOver, LAUNCHED_AFTER_MS } from './launch-limit.ts';
import { type ExitCause, LONGEST_BACKOFF_MS } from './plan-facts.ts';
import type { PodRow } from './pod.store.ts';
import type { PodPatch } from './pod-records.ts';
import type { LastExit } from './pod-row.ts';

const FIRST_BACKOFF_MS = 1_000;
/** A container that ran this long was healthy: its exit resets the count of consecutive failures. */
const HEALTHY_MS = 10 * 60_000;
/** Consecutive exits after which the pod's reason is CrashLoopBackOff. */
const CRASH_LOOP_ATTEMPTS = 3;
/** Time over which pod starts are spread after a reboot of the host. */
export const REBOOT_STAGGER_MS = 3_000;
const CAUSE_REASONS = { host_reboot: 'HostReboot', engine_restart: 'DockerUnavailable' } as const;
/** Limit of doublings: 2^9 s exceeds the longest backoff. */
const MAX_DOUBLINGS = 9;

/** Returns a random wait up to this attempt's limit, so that pods that failed together do not restart together. */
export function backoffMs(attempts: number, random: Random): number {
  const doublings = Math.min(Math.max(attempts - 1, 0), MAX_DOUBLINGS);
  return random.int(Math.min(FIRST_BACKOFF_MS * 2 ** doublings, LONGEST_BACKOFF_MS) + 1);
}

/**
 * Patch after a failed step. A pod that is being removed keeps its phase; a launch beyond its time limit is not
 * retried.
 */
export function afterFailure(
  row: PodRow,
  failure: { reason: ReasonCode; message: string },
  at: { nowMs: number; random: Random },
): PodPatch {
  const attempts = row.attempts + 1;
  return {
    phase: row.desired === 'removed' ? row.phase : 'backoff',
    reason: failure.reason,
    message: failure.message,
    attempts,
    next_retry_ms: at.nowMs + backoffMs(attempts, at.random),
    ...(isLaunchOver(row, at.nowMs) ? givenUp(row) : {}),
    // A requested reboot that fails at this step is recorded as done and continues as an ordinary restart.
    ...(row.phase === 'rebooting' ? { reboots_done: row.reboot_target } : {}),
  };
}

function givenUp(row: PodRow) {
  return { phase: 'failed', next_retry_ms: null, reboots_done: row.reboots_requested } as const;
}

/** Patch after the container has exited. Exits caused by a reboot of the host or a restart of the engine get no backoff. */
export function afterExit(
  row: PodRow,
  container: ContainerState,
  at: { nowMs: number; random: Random; cause: ExitCause },
): PodPatch {
  const exit = exitOf(container, at.cause);
  const ranMs = container.finishedMs - container.startedMs;
  const before = ranMs >= HEALTHY_MS ? 0 : row.attempts;
  const ended = { phase: 'backoff', last_exit_json: JSON.stringify(exit) } as const;
  if (at.cause !== 'itself') {
    const waitMs = at.cause === 'host_reboot' ? at.random.int(REBOOT_STAGGER_MS) : 0;
    return {
      ...ended,
      reason: exit.reason,
      message: messageOfExit(exit),
      attempts: before,
      next_retry_ms: at.nowMs + waitMs,
    };
  }
  const attempts = before + 1;
  const looping = attempts >= CRASH_LOOP_ATTEMPTS;
  const launched = row.launched === 1 || ranMs >= LAUNCHED_AFTER_MS ? 1 : 0;
  return {
    ...ended,
    launched,
    reason: looping ? 'CrashLoopBackOff' : exit.reason,
    message: messageOfRecorded(exit, attempts),
    attempts,
    next_retry_ms: at.nowMs + backoffMs(attempts, at.random),
    ...(isLaunchOver({ ...row, launched }, at.nowMs) ? givenUp(row) : {}),
  };
}

/** True if the host or the engine caused the exit. Such restarts do not count as the pod's. */
export function isInfrastructure(reason: ReasonCode): boolean {
  return reason === 'HostReboot' || reason === 'DockerUnavailable';
}

export function exitOf(container: ContainerState, cause: ExitCause): LastExit {
  return {
    exit_code: container.exitCode,
    oom_killed: container.oomKilled,
    finished_ms: container.finishedMs,
    reason: cause === 'itself' ? reasonOf(container) : CAUSE_REASONS[cause],
  };
}

/**
 * Returns the reason of an exit. Exit code 137 is neither necessary nor sufficient for an out-of-memory kill, so only
 * the engine's flag decides.
 */
function reasonOf(container: ContainerState): ReasonCode {
  if (container.oomKilled) return 'OOMKilled';
  return container.exitCode === 0 ? 'ExitedZero' : 'ExitedNonZero';
}

/** Message of the row after an exit that the pod itself has caused `attempts` times in a row. */
export function messageOfRecorded(exit: LastExit, attempts: number): string {
  const message = messageOfExit(exit);
  return attempts >= CRASH_LOOP_ATTEMPTS ? `${message}, ${attempts} times in a row` : message;
}

export function messageOfExit(exit: LastExit): string {
  switch (exit.reason) {
    case 'HostReboot':
      return 'The host was rebooted; the pod is being started again';
    case 'DockerUnavailable':
      return 'The Docker engine was restarted; the pod is being started again';
    case 'OOMKilled':
      return `The pod ran out of its memory (exit code ${exit.exit_code})`;
    default:
      return `The pod's process ended with exit code ${exit.exit_code}`;
  }
}
