/** Phases of a pod and the transitions between them; README.md in this folder has the diagram. Pure. */
import type { PodPhase } from '#shared/api/agent/pod.ts';

const INACTIVE = ['failed', 'quarantined', 'removing'] as const;
/** Phases that can be entered from every active phase. */
const ENDS = ['backoff', ...INACTIVE] as const;
/** Phases that follow when the image is present. */
const LAUNCH = ['creating', 'starting', 'running'] as const;

/**
 * All transitions. A pod returns to `pending` for a new generation, and if its image or container has vanished.
 */
export const MOVES: Record<PodPhase, readonly PodPhase[]> = {
  pending: ['pulling', 'building', ...LAUNCH, ...ENDS],
  pulling: ['pending', 'building', ...LAUNCH, ...ENDS],
  building: ['pending', 'pulling', ...LAUNCH, ...ENDS],
  creating: ['pending', 'starting', 'running', ...ENDS],
  starting: ['pending', 'creating', 'running', 'rebooting', ...ENDS],
  running: ['pending', 'rebooting', ...ENDS],
  rebooting: ['pending', ...LAUNCH, ...ENDS],
  backoff: ['pending', 'pulling', 'building', ...LAUNCH, 'rebooting', ...INACTIVE],
  removing: ['removed'],
  removed: [],
  failed: ['pending', 'removing'],
  quarantined: ['pending', 'removing'],
};

/** Returns true if the transition is allowed. Staying in a phase always is. */
export function mayMove(from: PodPhase, to: PodPhase): boolean {
  return from === to || MOVES[from].includes(to);
}

/** Phases that only a new request ends. */
export const RESTING_PHASES: readonly PodPhase[] = ['failed', 'quarantined', 'removed'];

/** Phases in which a container exists that can be stopped and started. */
export const REBOOTABLE_PHASES: readonly PodPhase[] = [
  'starting',
  'running',
  'rebooting',
  'backoff',
];
