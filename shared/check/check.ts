/**
 * The structure of checks, used by the doctors and by the validator: what a check detects and requires, what it
 * measured and how to fix a fault.
 */

/** Public: scripts compare these words. */
export const CHECK_STATUSES = ['ok', 'warn', 'fail', 'unknown'] as const;
export type CheckStatus = (typeof CHECK_STATUSES)[number];

/** The constant part of a check. Tables of checks are generated from it. */
export type CheckDefinition = {
  /** Stable: scripts, policies and stored evidence refer to it. */
  id: string;
  /** The fault that the check detects, as a noun phrase. */
  detects: string;
  /** Condition that must hold, as a noun phrase. */
  required: string;
};

export type Outcome<S extends CheckStatus = CheckStatus> = {
  status: S;
  /** Measured values, names, or the message of another program. */
  measured: string;
  /** Steps to take, commands included. Absent if nothing is to be done or the check's standard remedy applies. */
  remedy?: string;
  /** True if a deadline expired before the facts were known. */
  timedOut?: true;
};

/** Why facts are unavailable. */
export type Problem = {
  problem: string;
  /** True if a deadline expired: the requirement may hold or not. */
  timedOut?: true;
};

/** A pure function that judges facts that were collected before. */
export type Check<Facts, Result extends Outcome = Outcome> = CheckDefinition & {
  judge(facts: Facts): Result;
};

/** Outcome: the requirement holds. */
export function ok(measured: string): Outcome<'ok'> {
  return { status: 'ok', measured };
}

/** Outcome: the requirement holds, but renters are affected or it will fail later. */
export function warn(measured: string, remedy: string): Outcome<'warn'> {
  return { status: 'warn', measured, remedy };
}

/** Outcome: the requirement does not hold. */
export function fail(measured: string, remedy: string): Outcome<'fail'> {
  return { status: 'fail', measured, remedy };
}

/** Outcome: the facts are missing, so it is unknown whether the requirement holds. */
export function unknown(measured: string, remedy?: string): Outcome<'unknown'> {
  return { status: 'unknown', measured, ...(remedy === undefined ? {} : { remedy }) };
}

/** Outcome of facts that are unavailable: `unknown`, which records whether a deadline expired. */
export function unread(problem: Problem, measured: string, remedy?: string): Outcome<'unknown'> {
  const outcome = unknown(measured, remedy);
  return problem.timedOut === true ? { ...outcome, timedOut: true } : outcome;
}

/**
 * Outcome of facts whose absence is a fault: `otherwise`, or `unknown` after an expired deadline, which also a busy host
 * or network causes.
 */
export function unlessTimedOut(problem: Problem, otherwise: Outcome): Outcome {
  if (problem.timedOut !== true) return otherwise;
  return unread(problem, otherwise.measured, otherwise.remedy);
}
