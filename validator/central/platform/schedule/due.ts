/** Work with a due time. Each piece of work has one row until the work is done. */
import type { Db } from '../database/tables.ts';
import { addDue, dropDue, dueAtOf, putDue } from './schedule.store.ts';

/** Kinds of work. The comment of each group states what the subject id identifies. */
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
  /** Subject: a report on a pod. */
  | 'report-expiry'
  /** Subject: the name of a removal of old rows. */
  | 'retention';

/**
 * Sets the due time for a kind and subject, and replaces an existing one. Must be called after the transaction has
 * taken all other locks, because the schedule also locks this row last.
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

/** Cancels the work. Must be called after the transaction has taken all other locks, as `setDue`. */
export async function clearDue(tx: Db, kind: DueKind, subject: string): Promise<void> {
  await dropDue(tx, { kind, subject });
}

/** Returns the due time; null if none is set. */
export function dueAt(db: Db, kind: DueKind, subject: string): Promise<number | null> {
  return dueAtOf(db, { kind, subject });
}
