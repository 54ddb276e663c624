/** Verifies the address of an account with a mailed token, and grants the sign-up credit. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import {
  emailChangedMail,
  emailChangeRequestedMail,
  type MailContent,
  verificationMail,
} from '../../delivery/mail/mail-text.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { type Actor, SYSTEM_ACTOR } from '../../platform/identity.ts';
import { accountById } from '../auth/account-access.ts';
import type { MessageResponse } from './account.schemas.ts';
import {
  findAccountByEmail,
  lockAccountByEmail,
  markEmailVerified,
  updateAccount,
} from './account.store.ts';
import { recordAccountEvent } from './account-event.ts';
import type { AccountPorts } from './account-ports.ts';
import {
  type AccountTokens,
  type AddressHash,
  TOKEN_LIFETIMES_MS,
  unusable,
} from './account-token.service.ts';
import { emailTaken, normalEmail } from './email-address.ts';
import type { MailRequests } from './mail-requests.ts';

const PURPOSE = 'verify-email';
const NOTICE_USEFUL_MS = 7 * 24 * 60 * 60 * 1000;

export type EmailVerificationDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  options: { signupCreditUusd: number; consoleUrl?: string | null };
  tokens: AccountTokens;
  mails: Mails;
  addressHash: AddressHash;
  grantSignupCredit: AccountPorts['grantSignupCredit'];
  mailRequests: MailRequests;
  /** Sends queued mails now. */
  wakeMail(): void;
};

export type EmailVerification = ReturnType<typeof createEmailVerification>;

export function createEmailVerification(deps: EmailVerificationDeps) {
  const { db, clock, random, options, tokens, mails, addressHash, wakeMail } = deps;
  const { mailRequests } = deps;
  const places = { consoleUrl: options.consoleUrl ?? null };

  /** Mails a token to the account's current address. Call `wakeMail` after the transaction. */
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

  /** Grants the sign-up credit once per account and once per address. Returns micro-dollars. */
  function grantCredit(tx: Db, accountId: string, emailNorm: string): Promise<number> {
    return deps.grantSignupCredit(tx, {
      accountId,
      addressHash: addressHash(emailNorm),
      amountUusd: options.signupCreditUusd,
      nowMs: clock.now(),
    });
  }

  /** Returns false if the address is not the account's or is already verified. */
  async function markVerified(tx: Db, id: string, emailNorm: string, actor: Actor) {
    if (!(await markEmailVerified(tx, id, emailNorm, clock.now()))) return false;
    await tokens.endAll(tx, id, [PURPOSE]);
    await grantCredit(tx, id, emailNorm);
    await recordAccountEvent(tx, { clock, random }, id, actor, 'e-mail address verified');
    return true;
  }

  /**
   * Mails a token to the address that the account will have, and a notice to its present address. Call `wakeMail` after
   * the transaction.
   */
  async function beginChange(tx: Db, account: Account, email: string): Promise<void> {
    await tokens.endAll(tx, account.id);
    await begin(tx, { ...account, email, email_norm: normalEmail(email) });
    await addNotice(tx, account, emailChangeRequestedMail(email));
  }

  /** Sets the confirmed new address of the account. Returns false unless this address is the requested one. */
  async function applyChange(tx: Db, id: string, emailNorm: string, actor: Actor) {
    await lockRow(tx, 'accounts', id);
    const account = await accountById(tx, id);
    const email = account?.pending_email ?? null;
    if (account === undefined || email === null || normalEmail(email) !== emailNorm) return false;
    const nowMs = clock.now();
    const changes = { email, email_norm: emailNorm, email_verified_at: nowMs, pending_email: null };
    // Another account may have received the address since the request.
    if (!(await updateAccount(tx, id, { ...changes, updated_at: nowMs }))) throw emailTaken();
    await tokens.endAll(tx, id);
    await grantCredit(tx, id, emailNorm);
    await addNotice(tx, account, emailChangedMail(email));
    await recordAccountEvent(tx, { clock, random }, id, actor, 'e-mail address changed');
    return true;
  }

  function addNotice(tx: Db, account: Account, content: MailContent): Promise<void> {
    return mails.add(tx, {
      accountId: account.id,
      to: account.email,
      kind: 'email-changed',
      content,
      dedupeKey: `email-changed:${random.uuid()}`,
      usefulForMs: NOTICE_USEFUL_MS,
    });
  }

  return {
    begin,
    beginChange,
    addNotice,
    grantCredit,

    /** Returns the same response whether or not an account has the address; the mail is stored after the response. */
    async resend(emailNorm: string): Promise<MessageResponse> {
      mailRequests.add(async () => {
        await db.transaction().execute(async (tx) => {
          const account = await lockAccountByEmail(tx, emailNorm);
          if (account !== undefined && account.email_verified_at === null) await begin(tx, account);
        });
        wakeMail();
      });
      const message = 'If this address is not confirmed yet, a mail was sent to it';
      return { success: true, message };
    },

    /**
     * Marks an address as verified without a token, for the operator's accounts. Has no effect if it is already
     * verified.
     */
    async accept(emailNorm: string): Promise<void> {
      await moneyTransaction({ db, clock, random }, async (tx) => {
        const account = await findAccountByEmail(tx, emailNorm);
        if (account !== undefined) await markVerified(tx, account.id, emailNorm, SYSTEM_ACTOR);
      });
    },

    /**
     * Confirms the account's address, or changes the address to the confirmed one. Throws `bad_request` for an unusable
     * token, for a token that was mailed to a former address of the account, and if another account has the address.
     */
    async verify(token: string, actor: Actor): Promise<MessageResponse> {
      await moneyTransaction({ db, clock, random }, async (tx) => {
        const { account_id: id, email_norm: email } = await tokens.use(tx, PURPOSE, token);
        if (await markVerified(tx, id, email, actor)) return;
        if (!(await applyChange(tx, id, email, actor))) throw unusable();
      });
      wakeMail();
      return { success: true, message: 'The e-mail address is confirmed' };
    },
  };
}
