/** Mails: written in the transaction of what they tell of, sent later by mail.job.ts or read in the outbox. */

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

/** Whose mail it is. */
export type MailOwner = { accountId: string } | { providerId: string };

export type NewMail = MailOwner & {
  to: string;
  kind: MailKind;
  content: MailContent;
  /** The same for what happened once; a mail with a key that is there already is not written. */
  dedupeKey: string;
  /** Milliseconds from now. */
  usefulForMs: number;
  /** It counts for none of the mails in an hour: whoever writes it sees to it that they are few. */
  uncounted?: true;
};

/** Per owner and kind: nobody's mailbox is flooded through us. */
const MAX_PER_HOUR = 5;
const HOUR_MS = 3_600_000;
const RETENTION_MS = 7 * 24 * 60 * 60 * 1000;
const OUTBOX_SHOWN = 100;

export type MailsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
  /** Whether somebody sends them; otherwise they are kept to be read. */
  isSent: boolean;
};

export type Mails = ReturnType<typeof createMails>;

export function createMails({ db, clock, random, secret, isSent }: MailsDeps) {
  const sealing = createSealing({ key: deriveKey(secret, 'mail-sealing'), random });

  /** What a row says. */
  function open(row: MailRow): MailContent {
    return JSON.parse(sealing.open(row.sealed, row.id));
  }

  return {
    open,

    /** Stores a mail, unless there were too many in this hour; call it in the transaction of what it tells of. */
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

    /** Newest first. */
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

    /** Removes mails that are a week old, but for those still to be sent. */
    sweep: (tx: Db) => deleteOldMails(tx, clock.now() - RETENTION_MS),

    /** Removes everything addressed to an account. */
    forget: (tx: Db, accountId: string) => deleteMailsOf(tx, accountId),
  };
}

// MERGED validator/central/delivery/mail/mail.service.ts: The outbox of a marketplace without SMTP, as JSON. An addition of ours to the interface.
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
