/** Work that is due at a time: one row for each, until it is done. */
import type { Db } from '../database/tables.ts';
import { addDue, dropDue, dueAtOf, putDue } from './schedule.store.ts';

/** Kinds of work, with the subject of each. */
export type DueKind =
  /** A pod. */
  | 'pod-removal'
  | 'pod-removal-warning'
  | 'pod-failure-end'
  /** A notice. */
  | 'notice-backup'
  | 'notice-start'
  | 'notice-end'
  /** An account. */
  | 'low-balance'
  | 'balance-warning'
  | 'cut-off'
  | 'top-up'
  /** A pod. */
  | 'spend-cap'
  | 'grace-end'
  | 'grace-limit'
  | 'idle-warning'
  | 'idle-shutdown'
  /** A machine request and the position in the list of providers that are offered it. */
  | 'machine-request-offer'
  /** Name of a removal of old rows. */
  | 'retention';

/**
 * Sets the due time of a kind and subject, in place of an earlier one. Call it after the transaction has taken its other
 * locks: the schedule also locks this row last.
 */
export async function setDue(
  tx: Db,
  kind: DueKind,
  subject: string,
  dueAtMs: number,
): Promise<void> {
  await putDue(tx, { kind, subject, dueAtMs });
}

/** Sets the due time unless there is one. */
export async function ensureDue(
  tx: Db,
  kind: DueKind,
  subject: string,
  dueAtMs: number,
): Promise<void> {
  await addDue(tx, { kind, subject, dueAtMs });
}

/** Cancels the work. Lock order as for `setDue`. */
export async function clearDue(tx: Db, kind: DueKind, subject: string): Promise<void> {
  await dropDue(tx, { kind, subject });
}

/** Returns the due time; null if there is none. */
export function dueAt(db: Db, kind: DueKind, subject: string): Promise<number | null> {
  return dueAtOf(db, { kind, subject });
}
