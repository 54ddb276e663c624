/** What to do next for a pod, given its row and its containers (agent reference 5). Pure. */
import type { ContainerState } from '../containers/engine/engine.ts';
import {
  causeOfExit,
  type ExitCause,
  isAlive,
  isRebooting,
  isWanted,
  neverRan,
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
  /** Nothing to do before `untilMs`; null: until something happens. */
  | { kind: 'wait'; untilMs: number | null }
  | { kind: 'pull' }
  | { kind: 'create' }
  | { kind: 'start'; container: ContainerState }
  /** The wanted container runs and the row does not say so. */
  | { kind: 'adopt'; container: ContainerState }
  | { kind: 'record_exit'; container: ContainerState; cause: ExitCause }
  /** The container of a pod that should run is gone. */
  | { kind: 'record_lost' }
  /** It runs, and its network was taken from it. */
  | { kind: 'rejoin_network'; container: ContainerState }
  | { kind: 'begin_reboot'; container: ContainerState }
  | { kind: 'stop_for_reboot'; container: ContainerState }
  /** It is to stand still, or a restore is about to exchange its tree. */
  | { kind: 'stop_for_pause'; container: ContainerState }
  | { kind: 'finish_reboot'; container: ContainerState }
  | { kind: 'remove_containers'; containers: readonly ContainerState[] }
  /** Give up ports and GPUs that no generation asks for. */
  | { kind: 'release_leases' }
  /** Make the staged generation, whose image is there, the present one. */
  | { kind: 'switch' }
  | { kind: 'stop_fallback'; container: ContainerState }
  /** The present generation has proved itself: nothing is kept beside it. */
  | { kind: 'commit_change' }
  /** Make the fallback the present generation again; the row's own reason is the cause where none is given. */
  | { kind: 'roll_back'; cause: Cause | null }
  | { kind: 'finish_removal' };

const FOREVER: Step = { kind: 'wait', untilMs: null };

/** `containers` are all of this pod, as just observed. */
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

/** Whatever else is wanted waits until it may run again. */
function planPause(containers: readonly ContainerState[]): Step {
  const container = containers.find(isAlive);
  return container === undefined ? FOREVER : { kind: 'stop_for_pause', container };
}

function planRemoval(row: PodRow, containers: readonly ContainerState[], nowMs: number): Step {
  // A create that was cut off by its deadline may still come true after the pod is gone.
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
  // Of a generation that has just become the present one again: it was the agent that had stopped it.
  if (neverRan(container) || row.phase === 'pending') return { kind: 'start', container };
  // Recorded already: this is the restart that follows its backoff.
  if (lastExitOf(row)?.finished_ms === container.finishedMs) return { kind: 'start', container };
  return { kind: 'record_exit', container, cause: causeOfExit(row, container, facts) };
}

/** The start time tells a container that was not stopped yet from one that has come back. */
function planReboot(row: PodRow, container: ContainerState): Step {
  if (row.phase !== 'rebooting') return { kind: 'begin_reboot', container };
  if (!isAlive(container)) return { kind: 'start', container };
  return container.startedMs === row.reboot_from_ms
    ? { kind: 'stop_for_reboot', container }
    : { kind: 'finish_reboot', container };
}
