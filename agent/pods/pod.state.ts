/** Phases of a pod and the moves between them, as data (agent reference 4). Pure. */
import type { PodPhase } from '#shared/agent-api/pod.ts';

/**
 * Every move there is. `pending` is entered again by a new generation, and by a pod whose image or
 * container has vanished.
 */
export const MOVES: Record<PodPhase, readonly PodPhase[]> = {
  pending: [
    'pulling',
    'building',
    'creating',
    'starting',
    'running',
    'backoff',
    'failed',
    'quarantined',
    'removing',
  ],
  pulling: [
    'pending',
    'building',
    'creating',
    'starting',
    'running',
    'backoff',
    'failed',
    'quarantined',
    'removing',
  ],
  building: [
    'pending',
    'pulling',
    'creating',
    'starting',
    'running',
    'backoff',
    'failed',
    'quarantined',
    'removing',
  ],
  creating: ['pending', 'starting', 'running', 'backoff', 'failed', 'quarantined', 'removing'],
  starting: [
    'pending',
    'creating',
    'running',
    'rebooting',
    'backoff',
    'failed',
    'quarantined',
    'removing',
  ],
  running: ['pending', 'rebooting', 'backoff', 'failed', 'quarantined', 'removing'],
  rebooting: [
    'pending',
    'creating',
    'starting',
    'running',
    'backoff',
    'failed',
    'quarantined',
    'removing',
  ],
  backoff: [
    'pending',
    'pulling',
    'building',
    'creating',
    'starting',
    'rebooting',
    'running',
    'failed',
    'quarantined',
    'removing',
  ],
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
