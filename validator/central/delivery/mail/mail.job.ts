/**
 * Sends due mails. After a crash between sending and storing the result, a mail is sent again with the same Message-ID.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database, MailRow } from '../../platform/database/tables.ts';
import { type Mailer, MailRefused } from '../../platform/ports.ts';
import { createAttempts, RETRY_PAUSES_MS } from '../../platform/retries.ts';
import type { Mails } from './mail.service.ts';
import { updateMail, waitingMails } from './mail.store.ts';

const MAX_ERROR_CHARS = 300;

export type MailJobDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  mails: Mails;
  mailer: Mailer;
};

export type MailJob = ReturnType<typeof createMailJob>;

export function createMailJob({ db, clock, log, mails, mailer }: MailJobDeps) {
  async function send(row: MailRow): Promise<{ outcome: SendOutcome; error: string | null }> {
    try {
      await mailer.send({ id: row.id, to: row.to_address, ...mails.open(row) });
      return { outcome: 'sent', error: null };
    } catch (error) {
      const isPermanent = error instanceof MailRefused;
      const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
      return { outcome: isPermanent ? 'permanent' : 'transient', error: text };
    }
  }

  async function finish(row: MailRow, move: Partial<MailRow>): Promise<void> {
    // Once a mail will not be sent again, its tokens are deleted together with the content.
    const content = move.state === 'waiting' ? {} : { sealed: '' };
    await updateMail(db, row.id, { ...move, ...content, updated_at: clock.now() });
  }

  async function attempt(row: MailRow): Promise<void> {
    if (row.useful_until <= clock.now()) return finish(row, { state: 'expired' });
    const { outcome, error } = await send(row);
    const { attempts } = row;
    const move = afterAttempt(outcome, attempts, clock.now());
    const record = { mail: row.id, kind: row.kind, attempts, state: move.state };
    if (error === null) log.info(record, 'mail sent');
    else log.warn({ ...record, error }, 'mail not sent');
    await finish(row, { ...move, last_error: error });
  }

  return createAttempts({
    db,
    clock,
    log,
    rows: waitingMails,
    attempt,
    failure: 'sending mails failed',
  });
}

/** `permanent`: the server will never accept the mail. `transient`: the server may accept the mail later. */
export type SendOutcome = 'sent' | 'permanent' | 'transient';

export type MailMove = Pick<MailRow, 'state' | 'due_at'>;

/** Returns the state and due time after an attempt. `attempts` includes this attempt. Pure. */
export function afterAttempt(outcome: SendOutcome, attempts: number, nowMs: number): MailMove {
  if (outcome === 'sent') return { state: 'sent', due_at: nowMs };
  const pauseMs = RETRY_PAUSES_MS[attempts - 1];
  if (outcome === 'permanent' || pauseMs === undefined) return { state: 'failed', due_at: nowMs };
  return { state: 'waiting', due_at: nowMs + pauseMs };
}
