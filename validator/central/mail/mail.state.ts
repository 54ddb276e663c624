/** What becomes of a mail after an attempt to send it. Pure. */
import type { MailRow } from '../db/tables.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Pauses after the first, second, … attempt; after the last one the mail has failed. */
const RETRY_PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  HOUR_MS,
  6 * HOUR_MS,
  24 * HOUR_MS,
];

/** `permanent`: the server will never take it. `transient`: it may, later. */
export type SendOutcome = 'sent' | 'permanent' | 'transient';

export type MailMove = Pick<MailRow, 'state' | 'due_at'>;

/** `attempts` counts the present one. */
export function afterAttempt(outcome: SendOutcome, attempts: number, nowMs: number): MailMove {
  if (outcome === 'sent') return { state: 'sent', due_at: nowMs };
  const pauseMs = RETRY_PAUSES_MS[attempts - 1];
  if (outcome === 'permanent' || pauseMs === undefined) return { state: 'failed', due_at: nowMs };
  return { state: 'waiting', due_at: nowMs + pauseMs };
}
