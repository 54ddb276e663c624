/** The states of a pod, the moves between them and their names on the wire (marketplace reference 6). Pure. */

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

/** Before the first `running`: all of them are PENDING on the wire, told apart by the phase. */
export const CREATION_STATES = ['pending', 'building', 'pulling', 'starting', 'restoring'] as const;

/** States whose time costs money. */
export const BILLABLE_STATES = ['running', 'rebooting'] as const;

/** Where a pod waits for its agent to get further: it is looked at often. */
export const TRANSITIONAL_STATES: readonly PodState[] = [
  ...CREATION_STATES,
  'rebooting',
  'deleting',
];

/** Settled on the row; only the removal is left to do. */
export const REMOVAL_STATES: readonly PodState[] = ['creation_failed', 'deleting'];

const CREATION_EXITS = ['running', 'creation_failed', 'deleting'] as const;

/** Every allowed move. Ended pods are left alone. */
const MOVES: Record<PodState, readonly PodState[]> = {
  pending: ['building', 'pulling', 'starting', 'restoring', ...CREATION_EXITS],
  building: ['pending', 'pulling', 'starting', 'restoring', ...CREATION_EXITS],
  pulling: ['pending', 'building', 'starting', 'restoring', ...CREATION_EXITS],
  starting: ['pending', 'building', 'pulling', 'restoring', ...CREATION_EXITS],
  restoring: ['pending', 'building', 'pulling', 'starting', ...CREATION_EXITS],
  running: ['rebooting', 'stopped', 'unknown', 'broken', 'failed', 'deleting'],
  // Not to unknown, which looks like running: a reboot that nobody can follow is still one.
  rebooting: ['running', 'reboot_failed', 'stopped', 'failed', 'broken', 'deleting'],
  reboot_failed: ['rebooting', 'running', 'deleting'],
  unknown: ['running', 'rebooting', 'failed', 'broken', 'deleting'],
  failed: ['deleting'],
  broken: ['deleting'],
  stopped: ['starting', 'deleting'],
  creation_failed: ['deleting', 'deleted'],
  deleting: ['deleted'],
  deleted: [],
};

/** Whether the move is in the table. */
export function mayMove(from: PodState, to: PodState): boolean {
  return MOVES[from].includes(to);
}

/** Every state from which `to` can be entered: the condition of an update that makes the move. */
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

/** The status that clients see. */
export function wireStatus(state: PodState): WireStatus {
  return WIRE[state];
}

/** The finer name beside the status. */
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

/** The phase that clients see. */
export function wirePhase(state: PodState): WirePhase | null {
  return PHASES[state];
}

/** A state read from the database, where it is text. */
export function podStateOf(text: string): PodState {
  const state = POD_STATES.find((known) => known === text);
  if (state === undefined) throw new Error(`the pod state ${text} is unknown`);
  return state;
}
