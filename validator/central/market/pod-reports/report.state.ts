/** States of a renter's report and the permitted transitions. Pure. */
import type { ReportOutcome } from '#shared/api/central/pod-reports.ts';

export const REPORT_STATES = [
  'open',
  'examining',
  'confirmed',
  'not_confirmed',
  'expired',
] as const;
export type ReportState = (typeof REPORT_STATES)[number];

/** States of a report that has not ended. */
export const OPEN_STATES: readonly ReportState[] = ['open', 'examining'];

const TRANSITIONS: Record<ReportState, readonly ReportState[]> = {
  open: ['examining', 'expired'],
  examining: ['open', 'confirmed', 'not_confirmed', 'expired'],
  confirmed: [],
  not_confirmed: [],
  expired: [],
};

/** Returns every state from which a report may enter `to`, for the condition of the update. */
export function sourcesOf(to: ReportState): ReportState[] {
  return REPORT_STATES.filter((from) => TRANSITIONS[from].includes(to));
}

/** Number of examinations that may fail to be made before a report expires. */
const MAX_ATTEMPTS = 5;

/** Returns the state that follows an outcome; `attempts` counts the examinations that could not be made, this one included. */
export function stateAfter(outcome: ReportOutcome, attempts: number): ReportState {
  if (outcome === 'undecided') return 'expired';
  if (outcome !== 'unexamined') return outcome;
  return attempts >= MAX_ATTEMPTS ? 'expired' : 'open';
}
