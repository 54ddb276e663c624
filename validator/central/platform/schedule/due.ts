/** Work that is due at a time. Each piece of work has one row until it is done. */
import type { Db } from '../database/tables.ts';
import { addDue, dropDue, dueAtOf, putDue } from './schedule.store.ts';

/** Kinds of work. The comments state what the subject id of each group identifies. */
export type DueKind =
  /** Subject: a pod. */
  | 'pod-removal'
  | 'pod-removal-warning'
  | 'pod-failure-end'
  | 'launch-limit'
  /** Subject: a notice. */
  | 'notice-backup'
  | 'notice-start'
  | 'notice-end'
  /** Subject: an account. */
  | 'low-balance'
  | 'balance-warning'
  | 'cut-off'
  | 'top-up'
  /** Subject: a pod. */
  | 'spend-cap'
  | 'grace-end'
  | 'grace-limit'
  | 'idle-warning'
  | 'idle-shutdown'
  /** Subject: an API key. */
  | 'key-budget'
  /** Subject: a machine request, and the position in the list of providers to which it is offered. */
  | 'machine-request-offer'
  /** Subject: the name of a removal of old rows. */
  | 'retention';

/**
 * Sets the due time for a kind and subject; replaces an earlier one. Call it after the transaction has taken all its
 * other locks, because the schedule also locks this row last.
 */
export async function setDue(
  tx: Db,
  kind: DueKind,
  subject: string,
  dueAtMs: number,
): Promise<void> {
  await putDue(tx, { kind, subject, dueAtMs });
}

/** Sets the due time if none is set. */
export async function ensureDue(
  tx: Db,
  kind: DueKind,
  subject: string,
  dueAtMs: number,
): Promise<void> {
  await addDue(tx, { kind, subject, dueAtMs });
}

/** Cancels the work. Call it after the transaction has taken its other locks, as `setDue`. */
export async function clearDue(tx: Db, kind: DueKind, subject: string): Promise<void> {
  await dropDue(tx, { kind, subject });
}

/** Returns the due time; null if there is none. */
export function dueAt(db: Db, kind: DueKind, subject: string): Promise<number | null> {
  return dueAtOf(db, { kind, subject });
}
