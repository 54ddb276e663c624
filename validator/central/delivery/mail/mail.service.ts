/** Mails: stored in the transaction of the change that they report, then sent by mail.job.ts or read in the outbox. */

import { z } from 'zod';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import type { Database, Db, MailRow } from '../../platform/database/tables.ts';
import { NaiveTime } from '../../platform/wire.ts';
import {
  countMailsSince,
  deleteMailsOf,
  deleteOldMails,
  insertMail,
  listKeptMails,
} from './mail.store.ts';
import type { MailContent, MailKind } from './mail-text.ts';

export type MailOwner = { accountId: string } | { providerId: string };

export type NewMail = MailOwner & {
  to: string;
  kind: MailKind;
  content: MailContent;
  /** Identifies the reported change: a second mail with the same key is not stored. */
  dedupeKey: string;
  /** Milliseconds after which an unsent mail expires. */
  usefulForMs: number;
  /** True if the hourly limit does not apply, because the caller limits these mails itself. */
  uncounted?: true;
};

/** Maximum number of mails per hour to one recipient and of one kind. */
const MAX_PER_HOUR = 5;
const HOUR_MS = 3_600_000;
const RETENTION_MS = 7 * 24 * 60 * 60 * 1000;
const OUTBOX_SHOWN = 100;

export type MailsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
  /** False without a mailer: mails are then stored and can only be read in the outbox. */
  isSent: boolean;
};

export type Mails = ReturnType<typeof createMails>;

export function createMails({ db, clock, random, secret, isSent }: MailsDeps) {
  const sealing = createSealing({ key: deriveKey(secret, 'mail-sealing'), random });

  function open(row: MailRow): MailContent {
    return JSON.parse(sealing.open(row.sealed, row.id));
  }

  return {
    open,

    /**
     * Stores a mail unless the hourly limit is reached. Call this function in the transaction of the reported change.
     */
    async add(tx: Db, mail: NewMail): Promise<void> {
      const id = random.uuid();
      const nowMs = clock.now();
      if (mail.uncounted !== true) {
        const recent = await countMailsSince(tx, mail, mail.kind, nowMs - HOUR_MS);
        if (recent >= MAX_PER_HOUR) return;
      }
      await insertMail(tx, {
        id,
        account_id: 'accountId' in mail ? mail.accountId : null,
        provider_id: 'providerId' in mail ? mail.providerId : null,
        dedupe_key: mail.dedupeKey,
        kind: mail.kind,
        to_address: mail.to,
        sealed: sealing.seal(JSON.stringify(mail.content), id),
        state: isSent ? 'waiting' : 'kept',
        due_at: nowMs,
        useful_until: nowMs + mail.usefulForMs,
        attempts: 0,
        last_error: null,
        created_at: nowMs,
        updated_at: nowMs,
      });
    },

    /** Number of mails of one kind about this account in the last hour. */
    countRecent: (tx: Db, accountId: string, kind: MailKind) =>
      countMailsSince(tx, { accountId }, kind, clock.now() - HOUR_MS),

    /** Returns the mails in the outbox, newest first. */
    async outbox(): Promise<OutboxMail[]> {
      const rows = await listKeptMails(db, OUTBOX_SHOWN);
      return rows.map((row) => ({
        id: row.id,
        to: row.to_address,
        kind: row.kind,
        created_at: naiveUtc(row.created_at),
        ...open(row),
      }));
    },

    /** Deletes mails older than a week, except waiting ones. */
    sweep: (tx: Db) => deleteOldMails(tx, clock.now() - RETENTION_MS),

    forget: (tx: Db, accountId: string) => deleteMailsOf(tx, accountId),
  };
}

export const OutboxMail = z
  .object({
    id: z.uuid(),
    to: z.string(),
    kind: z.string(),
    created_at: NaiveTime,
    subject: z.string(),
    text: z.string(),
    html: z.string(),
  })
  .meta({ id: 'OutboxMail' });
export type OutboxMail = z.output<typeof OutboxMail>;
