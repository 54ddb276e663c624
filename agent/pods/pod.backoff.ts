/** When to try a pod again: 1 s doubling to 5 min with full jitter (agent reference 5). Pure. */
import type { ReasonCode } from '#shared/agent-api/pod.ts';
import type { Random } from '#shared/random.ts';
import type { ContainerState } from '../docker/engine.ts';
import type { PodRow } from '../store/pod.store.ts';
import { LONGEST_BACKOFF_MS } from './pod.plan.ts';
import type { LastExit } from './pod.record.ts';
import type { PodPatch } from './pod.records.ts';

const FIRST_BACKOFF_MS = 1_000;
/** A container that ran this long was healthy: its exit begins a new row of failures. */
const HEALTHY_MS = 10 * 60_000;
/** 2^9 s passes the longest backoff; a larger exponent would only lose precision. */
const MAX_DOUBLINGS = 9;

/** A random wait up to the bound of this attempt, so that pods that failed together do not come back together. */
export function backoffMs(attempts: number, random: Random): number {
  const doublings = Math.min(Math.max(attempts - 1, 0), MAX_DOUBLINGS);
  return random.int(Math.min(FIRST_BACKOFF_MS * 2 ** doublings, LONGEST_BACKOFF_MS) + 1);
}

/** The row's changes after one more failure. A pod being removed stays in that phase. */
export function afterFailure(
  row: PodRow,
  failure: { reason: ReasonCode; message: string },
  at: { nowMs: number; random: Random },
): PodPatch {
  const attempts = row.attempts + 1;
  return {
    phase: row.phase === 'removing' ? 'removing' : 'backoff',
    reason: failure.reason,
    message: failure.message,
    attempts,
    next_retry_ms: at.nowMs + backoffMs(attempts, at.random),
    // A reboot that got this far goes on as an ordinary restart.
    ...(row.phase === 'rebooting' ? { reboots_done: row.reboot_target } : {}),
  };
}

/** The row's changes after the container has ended by itself. A host reboot is nobody's failure: no wait. */
export function afterExit(
  row: PodRow,
  container: ContainerState,
  at: { nowMs: number; random: Random; hostRebooted: boolean },
): PodPatch {
  const exit = exitOf(container, at.hostRebooted);
  const ranMs = container.finishedMs - container.startedMs;
  const attempts = ranMs >= HEALTHY_MS ? 1 : row.attempts + 1;
  return {
    phase: 'backoff',
    reason: exit.reason,
    message: messageOfExit(exit),
    last_exit_json: JSON.stringify(exit),
    attempts: at.hostRebooted ? row.attempts : attempts,
    next_retry_ms: at.nowMs + (at.hostRebooted ? 0 : backoffMs(attempts, at.random)),
  };
}

function exitOf(container: ContainerState, hostRebooted: boolean): LastExit {
  return {
    exit_code: container.exitCode,
    oom_killed: container.oomKilled,
    finished_ms: container.finishedMs,
    reason: hostRebooted ? 'HostReboot' : reasonOf(container),
  };
}

/** The exit code is no witness of an out-of-memory kill: 137 is neither necessary nor sufficient for it. */
function reasonOf(container: ContainerState): ReasonCode {
  if (container.oomKilled) return 'OOMKilled';
  return container.exitCode === 0 ? 'ExitedZero' : 'ExitedNonZero';
}

function messageOfExit(exit: LastExit): string {
  switch (exit.reason) {
    case 'HostReboot':
      return 'The host was rebooted; the pod is being started again';
    case 'OOMKilled':
      return `The pod ran out of its memory (exit code ${exit.exit_code})`;
    default:
      return `The pod's process ended with exit code ${exit.exit_code}`;
  }
}
