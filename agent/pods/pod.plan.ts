/** Plans the next step for a pod from its row and its containers. Pure. */
import type { ContainerState } from '../containers/engine/engine.ts';
import {
  causeOfExit,
  type ExitCause,
  isAlive,
  isRebooting,
  isWanted,
  neverRan,
  oomReportUntilMs,
  type PlanFacts,
  REMOVING_POLL_MS,
  retryIsAhead,
} from './plan-facts.ts';
import { RESTING_PHASES } from './pod.state.ts';
import type { PodRow } from './pod.store.ts';
import { type Cause, fallbackOf, stagedOf } from './pod-generations.ts';
import { lastExitOf } from './pod-row.ts';
import { planTrial } from './trial.plan.ts';

export type Step =
  /** Nothing to do before `untilMs`, or before the next wake if null. */
  | { kind: 'wait'; untilMs: number | null }
  | { kind: 'pull' }
  | { kind: 'create' }
  | { kind: 'start'; container: ContainerState }
  /** The wanted container runs; record it. */
  | { kind: 'adopt'; container: ContainerState }
  | { kind: 'record_exit'; container: ContainerState; cause: ExitCause }
  /** The container of a pod that should run has vanished. */
  | { kind: 'record_lost' }
  /** The container runs without its network. */
  | { kind: 'rejoin_network'; container: ContainerState }
  | { kind: 'begin_reboot'; container: ContainerState }
  | { kind: 'stop_for_reboot'; container: ContainerState }
  /** The container must be stopped because the owner stopped the pod or a restore paused it. */
  | { kind: 'stop_for_pause'; container: ContainerState }
  | { kind: 'finish_reboot'; container: ContainerState }
  | { kind: 'remove_containers'; containers: readonly ContainerState[] }
  /** Release ports and GPUs that no generation uses. */
  | { kind: 'release_leases' }
  /** Make the staged generation, whose image is present, the present generation. */
  | { kind: 'switch' }
  | { kind: 'stop_fallback'; container: ContainerState }
  /** The present generation works: drop the fallback. */
  | { kind: 'commit_change' }
  /** Make the fallback the present generation again. A null cause means the row's reason. */
  | { kind: 'roll_back'; cause: Cause | null }
  | { kind: 'finish_removal' };

const FOREVER: Step = { kind: 'wait', untilMs: null };

/** `containers` are all containers of the pod. */
export function planPod(
  row: PodRow,
  containers: readonly ContainerState[],
  facts: PlanFacts,
): Step {
  if (row.desired === 'removed') return planRemoval(row, containers, facts.nowMs);
  if (facts.paused) return planPause(containers);
  if (stagedOf(row)?.image_id != null) return { kind: 'switch' };
  const fallback = fallbackOf(row);
  if (fallback !== null) return planTrial(row, fallback, containers, facts);
  const isResting = RESTING_PHASES.includes(row.phase);
  const stale = containers.filter((container) => !isWanted(container, row, facts));
  if (stale.length > 0 && !isResting) return { kind: 'remove_containers', containers: stale };
  if (facts.surplusLeases) return { kind: 'release_leases' };
  if (isResting) return FOREVER;
  if (retryIsAhead(row, facts.nowMs)) return { kind: 'wait', untilMs: row.next_retry_ms };
  const [container] = containers;
  return container === undefined ? planLaunch(row) : planContainer(row, container, facts);
}

function planPause(containers: readonly ContainerState[]): Step {
  const container = containers.find(isAlive);
  return container === undefined ? FOREVER : { kind: 'stop_for_pause', container };
}

function planRemoval(row: PodRow, containers: readonly ContainerState[], nowMs: number): Step {
  // A create call may succeed after its deadline, when the pod was already removed.
  if (row.phase === 'removed' && containers.length === 0) return FOREVER;
  if (retryIsAhead(row, nowMs)) return { kind: 'wait', untilMs: row.next_retry_ms };
  return containers.length > 0
    ? { kind: 'remove_containers', containers }
    : { kind: 'finish_removal' };
}

function planLaunch(row: PodRow): Step {
  if (row.container_id !== null) return { kind: 'record_lost' };
  return row.image_id === null ? { kind: 'pull' } : { kind: 'create' };
}

function planContainer(row: PodRow, container: ContainerState, facts: PlanFacts): Step {
  if (container.status === 'removing') {
    return { kind: 'wait', untilMs: facts.nowMs + REMOVING_POLL_MS };
  }
  if (isRebooting(row)) return planReboot(row, container);
  if (isAlive(container)) {
    if (container.networks.length === 0) return { kind: 'rejoin_network', container };
    const known = row.phase === 'running' && row.container_id === container.id;
    return known && row.boot_id === facts.bootId ? FOREVER : { kind: 'adopt', container };
  }
  // In phase `pending` the agent itself has stopped the container, as in a rollback, so its exit is not recorded.
  if (neverRan(container) || row.phase === 'pending') return { kind: 'start', container };
  // The exit is already recorded: this is the restart after its backoff.
  if (lastExitOf(row)?.finished_ms === container.finishedMs) return { kind: 'start', container };
  const cause = causeOfExit(row, container, facts);
  const untilMs = oomReportUntilMs(container, cause, facts.nowMs);
  return untilMs === null ? { kind: 'record_exit', container, cause } : { kind: 'wait', untilMs };
}

/**
 * Plans a requested reboot. The container's start time distinguishes one that was not stopped yet from one that was
 * already restarted.
 */
function planReboot(row: PodRow, container: ContainerState): Step {
  if (row.phase !== 'rebooting') return { kind: 'begin_reboot', container };
  if (!isAlive(container)) return { kind: 'start', container };
  return container.startedMs === row.reboot_from_ms
    ? { kind: 'stop_for_reboot', container }
    : { kind: 'finish_reboot', container };
}
