/** The states of a machine request and the moves between them (marketplace reference 6). Pure. */

export const MACHINE_REQUEST_STATES = ['pending', 'fulfilled', 'cancelled'] as const;
export type MachineRequestState = (typeof MACHINE_REQUEST_STATES)[number];

/** Every allowed move: a request ends once. */
const MOVES: Record<MachineRequestState, readonly MachineRequestState[]> = {
  pending: ['fulfilled', 'cancelled'],
  fulfilled: [],
  cancelled: [],
};

/** Every state from which `to` can be entered: the condition of an update that makes the move. */
export function sourcesOf(to: MachineRequestState): MachineRequestState[] {
  return MACHINE_REQUEST_STATES.filter((from) => MOVES[from].includes(to));
}
