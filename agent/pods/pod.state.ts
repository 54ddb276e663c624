/** Phases of a pod and the moves between them, as data (agent reference 4). Pure. */
import type { PodPhase } from '#shared/api/agent/pod.ts';

const GIVEN_UP = ['failed', 'quarantined', 'removing'] as const;
/** Where whatever is under way may come to. */
const ENDS = ['backoff', ...GIVEN_UP] as const;
/** With the image at hand. */
const LAUNCH = ['creating', 'starting', 'running'] as const;

/**
 * Every move there is. `pending` is entered again by a new generation, and by a pod whose image or
 * container has vanished.
 */
export const MOVES: Record<PodPhase, readonly PodPhase[]> = {
  pending: ['pulling', 'building', ...LAUNCH, ...ENDS],
  pulling: ['pending', 'building', ...LAUNCH, ...ENDS],
  building: ['pending', 'pulling', ...LAUNCH, ...ENDS],
  creating: ['pending', 'starting', 'running', ...ENDS],
  starting: ['pending', 'creating', 'running', 'rebooting', ...ENDS],
  running: ['pending', 'rebooting', ...ENDS],
  rebooting: ['pending', ...LAUNCH, ...ENDS],
  backoff: ['pending', 'pulling', 'building', ...LAUNCH, 'rebooting', ...GIVEN_UP],
  removing: ['removed'],
  removed: [],
  failed: ['pending', 'removing'],
  quarantined: ['pending', 'removing'],
};

/** Staying where one is counts as a move. */
export function mayMove(from: PodPhase, to: PodPhase): boolean {
  return from === to || MOVES[from].includes(to);
}

/** Phases that nothing but a new request leads out of. */
export const RESTING_PHASES: readonly PodPhase[] = ['failed', 'quarantined', 'removed'];

/** Phases in which a container exists that can be stopped and started. */
export const REBOOTABLE_PHASES: readonly PodPhase[] = [
  'starting',
  'running',
  'rebooting',
  'backoff',
];
