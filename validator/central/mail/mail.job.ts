/** Sends the mails that are due. A crash between sending and noting it sends one twice, under the same Message-ID. */
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import { type Loop, startLoop } from '#shared/loop.ts';
import type { Database, MailRow } from '../db/tables.ts';
import { type Mailer, MailRefused } from '../ports.ts';
import type { Mails } from './mail.service.ts';
import { afterAttempt, type SendOutcome } from './mail.state.ts';
import { claimMail, listDueMails, updateMail } from './mail.store.ts';

const INTERVAL_MS = 5_000;
const BATCH = 50;
/** Longer than an attempt can take: a mail of a process that died is tried again after this. */
const LEASE_MS = 120_000;
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
  let loop: Loop | null = null;

  async function attempt(row: MailRow): Promise<{ outcome: SendOutcome; error: string | null }> {
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
    // A mail that nobody sends any more gives its tokens away to nobody.
    const over = move.state === 'waiting' ? {} : { sealed: '' };
    await updateMail(db, row.id, { ...move, ...over, updated_at: clock.now() });
  }

  async function deliver(row: MailRow): Promise<void> {
    const nowMs = clock.now();
    if (!(await claimMail(db, row, nowMs + LEASE_MS))) return;
    if (row.useful_until <= nowMs) return finish(row, { state: 'expired' });
    const { outcome, error } = await attempt(row);
    const attempts = row.attempts + 1;
    const move = afterAttempt(outcome, attempts, clock.now());
    const record = { mail: row.id, kind: row.kind, attempts, state: move.state };
    if (error === null) log.info(record, 'mail sent');
    else log.warn({ ...record, error }, 'mail not sent');
    await finish(row, { ...move, last_error: error });
  }

  /** One pass over everything due, one mail after the other. */
  async function runOnce(signal?: AbortSignal): Promise<void> {
    for (const row of await listDueMails(db, clock.now(), BATCH)) {
      if (signal?.aborted) return;
      await deliver(row);
    }
  }

  return {
    runOnce,

    /** Looks for new mails now. */
    wake: () => loop?.wake(),

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: INTERVAL_MS,
        run: runOnce,
        onError: (error) => log.error({ err: error }, 'sending mails failed'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
    },
  };
}
