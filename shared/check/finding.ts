/** What one check of the host came to, and the remedy where there is something to do. */

export const FINDING_STATUSES = ['ok', 'warn', 'fail', 'unknown'] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

export type Finding = {
  /** Stable: scripts key on it. */
  id: string;
  /** `unknown`: it could not be seen from here, which is no verdict either way. */
  status: FindingStatus;
  finding: string;
  /** What to do, commands included; null when there is nothing to do. */
  remedy: string | null;
};

export function ok(id: string, finding: string): Finding {
  return { id, status: 'ok', finding, remedy: null };
}

/** It works now, and costs renters or breaks one day. */
export function warn(id: string, finding: string, remedy: string): Finding {
  return { id, status: 'warn', finding, remedy };
}

/** Pods will not run, or not be reached. */
export function fail(id: string, finding: string, remedy: string): Finding {
  return { id, status: 'fail', finding, remedy };
}

export function unknown(id: string, finding: string, remedy: string | null = null): Finding {
  return { id, status: 'unknown', finding, remedy };
}
