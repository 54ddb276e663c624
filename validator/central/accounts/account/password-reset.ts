/** Resets a password with a mailed token, which is single-use and expires after an hour. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { passwordChangedMail, passwordResetMail } from '../../delivery/mail/mail-text.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';
import { accountById } from '../auth/account-access.ts';
import type { Passwords } from '../auth/password.ts';
import type { Sessions } from '../auth/session.ts';
import type { MessageResponse, ResetPasswordDto } from './account.schemas.ts';
import { lockAccountByEmail, updateAccount } from './account.store.ts';
import { recordAccountEvent } from './account-event.ts';
import {
  type AccountTokens,
  type AddressHash,
  TOKEN_LIFETIMES_MS,
  unusable,
} from './account-token.service.ts';
import type { MailRequests } from './mail-requests.ts';

const PURPOSE = 'reset-password';
const NOTICE_USEFUL_MS = 7 * 24 * 60 * 60 * 1000;

export type PasswordResetDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  options: { consoleUrl?: string | null };
  tokens: AccountTokens;
  mails: Mails;
  sessions: Sessions;
  passwords: Passwords;
  addressHash: AddressHash;
  mailRequests: MailRequests;
  wakeMail(): void;
};

export type PasswordReset = ReturnType<typeof createPasswordReset>;

export function createPasswordReset(deps: PasswordResetDeps) {
  const { db, clock, random, options, tokens, mails, sessions, passwords, addressHash } = deps;
  const { mailRequests } = deps;
  const places = { consoleUrl: options.consoleUrl ?? null };

  async function mailToken(tx: Db, account: Account): Promise<void> {
    const token = await tokens.issue(tx, account, PURPOSE);
    await mails.add(tx, {
      accountId: account.id,
      to: account.email,
      kind: 'password-reset',
      content: passwordResetMail(places, token),
      dedupeKey: `${PURPOSE}:${addressHash(token)}`,
      usefulForMs: TOKEN_LIFETIMES_MS[PURPOSE],
    });
  }

  return {
    /** Returns the same response whether or not an account has the address; the mail is stored after the response. */
    async request(emailNorm: string): Promise<MessageResponse> {
      mailRequests.add(async () => {
        await db.transaction().execute(async (tx) => {
          const account = await lockAccountByEmail(tx, emailNorm);
          if (account !== undefined) await mailToken(tx, account);
        });
        deps.wakeMail();
      });
      const message = 'If there is an account with this address, a mail was sent to it';
      return { success: true, message };
    },

    /**
     * Sets the password and ends all sessions, other reset tokens and a requested change of the address; API keys stay
     * valid. Throws `bad_request`.
     */
    async reset(body: ResetPasswordDto, actor: Actor): Promise<MessageResponse> {
      // Checks the token first, so that guessed tokens do not cost a password hash.
      await tokens.requireLive(db, PURPOSE, body.token);
      const passwordHash = await passwords.hash(body.new_password);
      await db.transaction().execute(async (tx) => {
        const { account_id: id, email_norm: email } = await tokens.use(tx, PURPOSE, body.token);
        const account = await accountById(tx, id);
        if (account === undefined || account.email_norm !== email) throw unusable();
        const changes = {
          password_hash: passwordHash,
          pending_email: null,
          updated_at: clock.now(),
        };
        await updateAccount(tx, id, changes);
        await sessions.revokeAll(tx, 'user', id, null);
        // Without a requested change, an unconfirmed address can still be confirmed.
        await (account.pending_email === null
          ? tokens.endAll(tx, id, [PURPOSE])
          : tokens.endAll(tx, id));
        await addPasswordNotice(tx, mails, account, random);
        await recordAccountEvent(tx, { clock, random }, id, actor, 'password reset by mail');
      });
      deps.wakeMail();
      return { success: true, message: 'The password is changed; log in with the new password' };
    },
  };
}

/** Mails the owner that the password has changed. */
export function addPasswordNotice(
  tx: Db,
  mails: Mails,
  account: Account,
  random: Random,
): Promise<void> {
  return mails.add(tx, {
    accountId: account.id,
    to: account.email,
    kind: 'password-changed',
    content: passwordChangedMail(),
    dedupeKey: `password-changed:${random.uuid()}`,
    usefulForMs: NOTICE_USEFUL_MS,
  });
}
