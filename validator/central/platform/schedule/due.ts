/** What is to happen at a time: a row for each, kept until it has happened (marketplace reference 1.10). */
import type { Db } from '../database/tables.ts';
import { addDue, dropDue, dueAtOf, putDue } from './schedule.store.ts';

/** Beside each kind: what its subject is. */
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
  /** A machine request, and how far providers were told of it. */
  | 'machine-request-offer'
  /** What is to be removed once it is old, by a word. */
  | 'retention';

/**
 * Has it happen at `dueAtMs`, in place of when it was to happen before; one row for each kind and subject. Call it
 * after the transaction has taken its other locks: the schedule takes a row's own lock last, too.
 */
export async function setDue(
  tx: Db,
  kind: DueKind,
  subject: string,
  dueAtMs: number,
): Promise<void> {
  await putDue(tx, { kind, subject, dueAtMs });
}

/** The same, unless it is to happen already. */
export async function ensureDue(
  tx: Db,
  kind: DueKind,
  subject: string,
  dueAtMs: number,
): Promise<void> {
  await addDue(tx, { kind, subject, dueAtMs });
}

/** Has it not happen; locks as in `setDue`. */
export async function clearDue(tx: Db, kind: DueKind, subject: string): Promise<void> {
  await dropDue(tx, { kind, subject });
}

/** When it is to happen; null when it is not. */
export function dueAt(db: Db, kind: DueKind, subject: string): Promise<number | null> {
  return dueAtOf(db, { kind, subject });
}
