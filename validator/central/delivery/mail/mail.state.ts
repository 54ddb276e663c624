/** What becomes of a mail after an attempt to send it. Pure. */
import type { MailRow } from '../../platform/database/tables.ts';
import { RETRY_PAUSES_MS } from '../../platform/retry-pauses.ts';

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
