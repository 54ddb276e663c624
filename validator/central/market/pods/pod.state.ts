/**
 * States of a pod, the moves between states, and the names of states on the wire. The README of this folder has the
 * diagram. Pure.
 */

export const POD_STATES = [
  'pending',
  'building',
  'pulling',
  'starting',
  'restoring',
  'running',
  'rebooting',
  'reboot_failed',
  'unknown',
  'failed',
  'broken',
  'stopped',
  'creation_failed',
  'deleting',
  'deleted',
] as const;
export type PodState = (typeof POD_STATES)[number];

/** States before the first `running`; all are PENDING on the wire and differ by phase. */
export const CREATION_STATES = ['pending', 'building', 'pulling', 'starting', 'restoring'] as const;

/** States that are charged. */
export const BILLABLE_STATES = ['running', 'rebooting'] as const;

/** States in which a pod waits for its agent, which is therefore polled often. */
export const TRANSITIONAL_STATES: readonly PodState[] = [
  ...CREATION_STATES,
  'rebooting',
  'deleting',
];

/** States in which only the removal of the pod remains to be done. */
export const REMOVAL_STATES: readonly PodState[] = ['creation_failed', 'deleting'];

const CREATION_EXITS = ['running', 'creation_failed', 'deleting'] as const;

/** Every allowed move. */
const MOVES: Record<PodState, readonly PodState[]> = {
  pending: ['building', 'pulling', 'starting', 'restoring', ...CREATION_EXITS],
  building: ['pending', 'pulling', 'starting', 'restoring', ...CREATION_EXITS],
  pulling: ['pending', 'building', 'starting', 'restoring', ...CREATION_EXITS],
  starting: ['pending', 'building', 'pulling', 'restoring', ...CREATION_EXITS],
  restoring: ['pending', 'building', 'pulling', 'starting', ...CREATION_EXITS],
  // The pod returns to `starting` if its process ends before the launch counts as successful.
  running: ['starting', 'rebooting', 'stopped', 'unknown', 'broken', 'failed', 'deleting'],
  // A rebooting pod whose node is silent stays `rebooting`, and only its phase becomes `unreachable`.
  rebooting: ['running', 'reboot_failed', 'stopped', 'failed', 'broken', 'deleting'],
  reboot_failed: ['rebooting', 'running', 'deleting'],
  unknown: ['running', 'rebooting', 'failed', 'broken', 'deleting'],
  failed: ['deleting'],
  // The node of a lost pod may return with the pod.
  broken: ['running', 'rebooting', 'failed', 'deleting'],
  stopped: ['starting', 'deleting'],
  creation_failed: ['deleting', 'deleted'],
  deleting: ['deleted'],
  deleted: [],
};

export function mayMove(from: PodState, to: PodState): boolean {
  return MOVES[from].includes(to);
}

/** Returns the states from which a pod can move to `to`. */
export function sourcesOf(to: PodState): PodState[] {
  return POD_STATES.filter((from) => mayMove(from, to));
}

export const WIRE_STATUSES = [
  'PENDING',
  'RUNNING',
  'REBOOT_PENDING',
  'STOPPED',
  'FAILED',
  'CREATION_FAILED',
  'REBOOT_FAILED',
  'BROKEN',
  'DELETING',
  'DELETED',
] as const;
export type WireStatus = (typeof WIRE_STATUSES)[number];

const WIRE: Record<PodState, WireStatus> = {
  pending: 'PENDING',
  building: 'PENDING',
  pulling: 'PENDING',
  starting: 'PENDING',
  restoring: 'PENDING',
  running: 'RUNNING',
  rebooting: 'REBOOT_PENDING',
  reboot_failed: 'REBOOT_FAILED',
  unknown: 'RUNNING',
  failed: 'FAILED',
  broken: 'BROKEN',
  stopped: 'STOPPED',
  creation_failed: 'CREATION_FAILED',
  deleting: 'DELETING',
  deleted: 'DELETED',
};

export function wireStatus(state: PodState): WireStatus {
  return WIRE[state];
}

/** Phases, which are more detailed than the status. */
export const WIRE_PHASES = [
  'queued',
  'building',
  'pulling',
  'starting',
  'restoring',
  'configuring',
  'ready',
  'rebooting',
  'stopped',
  'unreachable',
  'deleting',
] as const;
export type WirePhase = (typeof WIRE_PHASES)[number];

const PHASES: Record<PodState, WirePhase | null> = {
  pending: 'queued',
  building: 'building',
  pulling: 'pulling',
  starting: 'starting',
  restoring: 'restoring',
  running: 'ready',
  rebooting: 'rebooting',
  reboot_failed: null,
  unknown: 'unreachable',
  failed: null,
  broken: null,
  stopped: 'stopped',
  creation_failed: null,
  deleting: 'deleting',
  deleted: null,
};

export function wirePhase(state: PodState): WirePhase | null {
  return PHASES[state];
}

/** Parses a state that is stored as text. Throws for an unknown state. */
export function podStateOf(text: string): PodState {
  const found = POD_STATES.find((state) => state === text);
  if (found === undefined) throw new Error(`unknown pod state ${text}`);
  return found;
}
