/**
 * Outer limit of a launch, for an agent that the central API does not reach. The central API ends launches much earlier.
 * Pure.
 */
import type { ContainerState } from '../containers/engine/engine.ts';
import { isAlive, type PlanFacts } from './plan-facts.ts';
import type { PodRow } from './pod.store.ts';

/** Age after which a pod that has never worked is not retried. */
export const LAUNCH_LIMIT_MS = 3 * 3_600_000;
/** A pod has worked if a container has run this long. */
export const LAUNCHED_AFTER_MS = 30_000;

/** Returns true if the pod works. A paused pod has worked before: its owner stopped it, or a restore pauses it. */
export function hasLaunched(
  containers: readonly ContainerState[],
  { nowMs, paused }: Pick<PlanFacts, 'nowMs' | 'paused'>,
): boolean {
  return (
    paused ||
    containers.some((each) => isAlive(each) && nowMs - each.startedMs >= LAUNCHED_AFTER_MS)
  );
}

/** Returns true if the pod has never worked within the limit. */
export function isLaunchOver(row: PodRow, nowMs: number): boolean {
  return (
    row.launched === 0 && row.desired === 'running' && nowMs - row.created_ms >= LAUNCH_LIMIT_MS
  );
}
