/** States of a machine request and the permitted transitions. Pure. */

export const MACHINE_REQUEST_STATES = ['pending', 'fulfilled', 'cancelled'] as const;
export type MachineRequestState = (typeof MACHINE_REQUEST_STATES)[number];

const TRANSITIONS: Record<MachineRequestState, readonly MachineRequestState[]> = {
  pending: ['fulfilled', 'cancelled'],
  fulfilled: [],
  cancelled: [],
};

/** Returns every state from which a request may enter `to`, for the condition of the update. */
export function sourcesOf(to: MachineRequestState): MachineRequestState[] {
  return MACHINE_REQUEST_STATES.filter((from) => TRANSITIONS[from].includes(to));
}
