/** Proving that an address is the account's own: a mailed token, and what verification brings (marketplace reference 1.16). */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { verificationMail } from '../../delivery/mail/mail-text.ts';
import { grantSignupCredit } from '../../money/balance/balance.service.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { type Actor, SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { MessageResponse } from './account.schemas.ts';
import { findAccountByEmail, markEmailVerified } from './account.store.ts';
import { recordAccountEvent } from './account-event.ts';
import { type AccountTokens, TOKEN_LIFETIMES_MS, unusable } from './account-token.service.ts';
import type { AddressHash } from './address-hash.ts';

const PURPOSE = 'verify-email';

export type EmailVerificationDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  options: { signupCreditUusd: number; consoleUrl?: string | null };
  tokens: AccountTokens;
  mails: Mails;
  addressHash: AddressHash;
  /** Has waiting mails sent now. */
  wakeMail(): void;
};

export type EmailVerification = ReturnType<typeof createEmailVerification>;

export function createEmailVerification(deps: EmailVerificationDeps) {
  const { db, clock, random, options, tokens, mails, addressHash, wakeMail } = deps;
  const places = { consoleUrl: options.consoleUrl ?? null };

  /** Mails a token to the account's present address; call `wakeMail` after the transaction. */
  async function begin(tx: Db, account: Account): Promise<void> {
    const token = await tokens.issue(tx, account, PURPOSE);
    await mails.add(tx, {
      accountId: account.id,
      to: account.email,
      kind: PURPOSE,
      content: verificationMail(places, token),
      dedupeKey: `${PURPOSE}:${addressHash(token)}`,
      usefulForMs: TOKEN_LIFETIMES_MS[PURPOSE],
    });
  }

  /** Once per account and once per address; returns micro-dollars. */
  function grantCredit(tx: Db, accountId: string, emailNorm: string): Promise<number> {
    return grantSignupCredit(tx, {
      accountId,
      addressHash: addressHash(emailNorm),
      amountUusd: options.signupCreditUusd,
      nowMs: clock.now(),
    });
  }

  /** With all that comes of it; false for an address that is not the account's, or verified already. */
  async function markVerified(tx: Db, id: string, emailNorm: string, actor: Actor) {
    if (!(await markEmailVerified(tx, id, emailNorm, clock.now()))) return false;
    await tokens.endAll(tx, id, [PURPOSE]);
    await grantCredit(tx, id, emailNorm);
    await recordAccountEvent(tx, { clock, random }, id, actor, 'e-mail address verified');
    return true;
  }

  return {
    begin,
    grantCredit,

    /** Answers alike whether or not there is such an account. */
    async resend(emailNorm: string): Promise<MessageResponse> {
      await db.transaction().execute(async (tx) => {
        const account = await findAccountByEmail(tx, emailNorm);
        if (account !== undefined && account.email_verified_at === null) await begin(tx, account);
      });
      wakeMail();
      const message = 'If this address waits to be confirmed, a mail is on its way to it';
      return { success: true, message };
    },

    /** Takes the operator's word for an address. */
    async accept(emailNorm: string): Promise<void> {
      await moneyTransaction({ db, clock, random }, async (tx) => {
        const account = await findAccountByEmail(tx, emailNorm);
        if (account !== undefined) await markVerified(tx, account.id, emailNorm, SYSTEM_ACTOR);
      });
    },

    /** Throws `bad_request`, also for the token of an address that the account has given up since. */
    async verify(token: string, actor: Actor): Promise<MessageResponse> {
      await moneyTransaction({ db, clock, random }, async (tx) => {
        const { account_id: id, email_norm: email } = await tokens.use(tx, PURPOSE, token);
        if (!(await markVerified(tx, id, email, actor))) throw unusable();
      });
      return { success: true, message: 'The e-mail address is confirmed' };
    },
  };
}
