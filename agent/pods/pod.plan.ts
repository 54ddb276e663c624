/** What to do next for a pod, given its row and its containers (agent reference 5). Pure. */
import { type ContainerState, LABELS } from '../docker/engine.ts';
import type { PodRow } from '../store/pod.store.ts';
import { lastExitOf } from './pod.record.ts';
import { RESTING_PHASES } from './pod.state.ts';

export type PlanFacts = {
  nowMs: number;
  /** When the host booted: what ran before and stopped did not stop by itself. */
  hostBootMs: number;
  /** What the label of a container made from the present spec and ports says. */
  launchHash: string;
};

export type Step =
  /** Nothing to do before `untilMs`; null: until something happens. */
  | { kind: 'wait'; untilMs: number | null }
  | { kind: 'pull' }
  | { kind: 'create' }
  | { kind: 'start'; container: ContainerState }
  /** The wanted container runs and the row does not say so. */
  | { kind: 'adopt'; container: ContainerState }
  | { kind: 'record_exit'; container: ContainerState; hostRebooted: boolean }
  /** The container of a pod that should run is gone. */
  | { kind: 'record_lost' }
  | { kind: 'begin_reboot'; container: ContainerState }
  | { kind: 'stop_for_reboot'; container: ContainerState }
  | { kind: 'finish_reboot'; container: ContainerState }
  | { kind: 'remove_containers'; containers: readonly ContainerState[] }
  | { kind: 'finish_removal' };

/** No backoff is longer; a retry further away means that the host's clock was set back. */
export const LONGEST_BACKOFF_MS = 5 * 60_000;
/** How soon to look again at a container that the engine is removing. */
const REMOVING_POLL_MS = 500;
const FOREVER: Step = { kind: 'wait', untilMs: null };

/** `containers` are all of this pod, as just observed. */
export function planPod(
  row: PodRow,
  containers: readonly ContainerState[],
  facts: PlanFacts,
): Step {
  if (row.desired === 'removed') return planRemoval(row, containers, facts.nowMs);
  if (RESTING_PHASES.includes(row.phase)) return FOREVER;
  const stale = containers.filter((container) => !isWanted(container, row, facts));
  if (stale.length > 0) return { kind: 'remove_containers', containers: stale };
  if (retryIsAhead(row, facts.nowMs)) return { kind: 'wait', untilMs: row.next_retry_ms };
  const [container] = containers;
  return container === undefined ? planLaunch(row) : planContainer(row, container, facts);
}

function planRemoval(row: PodRow, containers: readonly ContainerState[], nowMs: number): Step {
  if (row.phase === 'removed') return FOREVER;
  if (retryIsAhead(row, nowMs)) return { kind: 'wait', untilMs: row.next_retry_ms };
  return containers.length > 0
    ? { kind: 'remove_containers', containers }
    : { kind: 'finish_removal' };
}

function isWanted(container: ContainerState, row: PodRow, facts: PlanFacts): boolean {
  return (
    container.status !== 'dead' &&
    container.labels[LABELS.generation] === String(row.generation) &&
    container.labels[LABELS.specHash] === facts.launchHash
  );
}

function retryIsAhead(row: PodRow, nowMs: number): boolean {
  if (row.next_retry_ms === null) return false;
  // A reboot is an order to start now.
  if (row.phase !== 'removing' && (row.phase !== 'backoff' || isRebooting(row))) return false;
  return row.next_retry_ms > nowMs && row.next_retry_ms - nowMs <= LONGEST_BACKOFF_MS;
}

function isRebooting(row: PodRow): boolean {
  return row.reboots_requested > row.reboots_done;
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
    const known = row.phase === 'running' && row.container_id === container.id;
    return known ? FOREVER : { kind: 'adopt', container };
  }
  // A start that failed leaves an exit code, but nothing has run.
  const neverRan = container.status === 'created' || container.startError !== '';
  if (neverRan) return { kind: 'start', container };
  // Recorded already: this is the restart that follows its backoff.
  if (lastExitOf(row)?.finished_ms === container.finishedMs) return { kind: 'start', container };
  const hostRebooted = container.startedMs < facts.hostBootMs;
  return { kind: 'record_exit', container, hostRebooted };
}

/** The start time tells a container that was not stopped yet from one that has come back. */
function planReboot(row: PodRow, container: ContainerState): Step {
  if (row.phase !== 'rebooting') return { kind: 'begin_reboot', container };
  if (!isAlive(container)) return { kind: 'start', container };
  return container.startedMs === row.reboot_from_ms
    ? { kind: 'stop_for_reboot', container }
    : { kind: 'finish_reboot', container };
}

/** Paused and restarting are not our doing; the processes exist all the same. */
function isAlive(container: ContainerState): boolean {
  return ['running', 'paused', 'restarting'].includes(container.status);
}
