/** Collects the first violation of an invariant, which ends the run. */
import type { Journal } from '../world/journal.ts';

/** Invariants by name, with what they state. */
export const INVARIANTS = {
  'gpu-leased-once': 'no GPU is leased to two pods',
  'slot-of-pod': 'no slot belongs to a pod that has ended',
  ledger: 'the ledger sums to zero, holds stay within balances, and each cause is posted once',
  metered: 'each charge is the metered time of its pod',
  'rental-decided': 'each accepted rental runs, fails or is refunded within its limit',
  weights: 'the newest weights follow from the stored evidence',
  liveness: 'some hours after the last fault, no pod starts, reboots or ends any more',
  progress: 'no timers add each other for ever at one instant',
  errors: 'no actor receives an answer that it cannot use',
} as const;

export type Invariant = keyof typeof INVARIANTS;

export type Violation = {
  invariant: Invariant;
  /** Description of the violation. */
  what: string;
  atMs: number;
  /** Number of events before it. */
  events: number;
  /** Ids of the objects concerned, and the events that concern them. */
  subjects: readonly string[];
  trace: readonly string[];
};

export type Violations = {
  /** Records a violation. Only the first one counts. */
  report(invariant: Invariant, what: string, subjects: readonly string[]): void;
  first(): Violation | null;
};

export function createViolations(nowMs: () => number, journal: Journal): Violations {
  let first: Violation | null = null;
  return {
    report(invariant, what, subjects) {
      if (first !== null) return;
      const trace = journal.traceOf(subjects);
      first = { invariant, what, atMs: nowMs(), events: journal.count(), subjects, trace };
    },
    first: () => first,
  };
}
