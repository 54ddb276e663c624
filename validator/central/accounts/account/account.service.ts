/**
 * Accounts: sign-up, log-in, profile and preferences. See account-update.ts and account-removal.ts for updates and
 * removal.
 */
import { z } from 'zod';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { SOURCES, type Source, type UserIdentity } from '../../platform/identity.ts';
import type { ChatUser } from '../../platform/ports.ts';
import type { ApiKeys } from '../api-keys/api-key.service.ts';
import { accountById, accountOf, lockAccount } from '../auth/account-access.ts';
import type { LogInTickets } from '../auth/log-in-ticket.ts';
import type { Passwords } from '../auth/password.ts';
import type { Sessions, SignedSession } from '../auth/session.ts';
import type { CreateUserDto, LoginUserDto, User, UserPreference } from './account.schemas.ts';
import {
  findAccountByChatUser,
  findAccountByEmail,
  insertAccount,
  updateAccount,
} from './account.store.ts';
import type { AccountPorts } from './account-ports.ts';
import type { AccountTokens } from './account-token.service.ts';
import { createAccountView } from './account-view.ts';
import { emailTaken, normalEmail } from './email-address.ts';
import type { EmailVerification } from './email-verification.ts';

export type AccountsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  options: { verifyEmailAtSignup: boolean };
  sessions: Sessions;
  logInTickets: LogInTickets;
  passwords: Passwords;
  apiKeys: ApiKeys;
  verification: EmailVerification;
  mails: Mails;
  tokens: AccountTokens;
  ports: AccountPorts;
  /** Sends queued mails now. */
  wakeMail(): void;
};

/** Random bytes of a referral code, which has 8 characters. */
const REFERRAL_CODE_BYTES = 6;

export type Accounts = ReturnType<typeof createAccounts>;

export function createAccounts(deps: AccountsDeps) {
  const { db, clock, random, options, passwords, apiKeys, logInTickets } = deps;
  const { verification, ports, wakeMail } = deps;
  const logIn = createLogIn(deps);
  const view = createAccountView(db, ports);

  function newAccount({ email, name }: CreateUserDto, passwordHash: string): Account {
    const nowMs = clock.now();
    return {
      id: random.uuid(),
      email,
      email_norm: normalEmail(email),
      email_verified_at: options.verifyEmailAtSignup ? nowMs : null,
      pending_email: null,
      password_hash: passwordHash,
      name: name ?? email.slice(0, email.indexOf('@')),
      default_template_id: null,
      referral_code: randomToken(random, REFERRAL_CODE_BYTES),
      company_name: null,
      avatar_url: null,
      disable_incoming_connections: 0,
      termination_hours_json: '{}',
      signup_credit_at: null,
      chat_user_id: null,
      chat_username: null,
      referral_payout_method: 'balance',
      referral_crypto_address: null,
      referral_crypto_network: null,
      payment_customer_id: null,
      payout_account_id: null,
      payout_onboarded_at: null,
      operator_since: null,
      deleted_at: null,
      created_at: nowMs,
      updated_at: nowMs,
    };
  }

  /** Grants the sign-up credit to a verified address, otherwise mails a verification token. Returns micro-dollars. */
  async function welcome(tx: Db, account: Account): Promise<number> {
    if (account.email_verified_at !== null) {
      return verification.grantCredit(tx, account.id, account.email_norm);
    }
    await verification.begin(tx, account);
    return 0;
  }

  async function loggedIn(account: Account, { token, expiresAtMs }: SignedSession) {
    return { user: await view(account), token, expires_at: naiveUtc(expiresAtMs) };
  }

  async function preferenceOf(account: Account): Promise<UserPreference> {
    const { id, default_template_id: templateId } = account;
    // Null if the default template has been deleted.
    const template = templateId === null ? null : await ports.templateFor(db, id, templateId);
    return {
      default_template_id: template?.id ?? null,
      default_template: template,
      default_termination_hours: terminationHoursOf(account),
    };
  }

  return {
    async signUp(body: CreateUserDto) {
      if ((await findAccountByEmail(db, normalEmail(body.email))) !== undefined) {
        throw emailTakenAtSignUp();
      }
      const { referral_code: code } = body;
      const referrerId =
        code === undefined || code === '' ? null : await ports.referrerOf(db, code);
      const account = newAccount(body, await passwords.hash(body.password));
      const { key, credit } = await moneyTransaction({ db, clock, random }, async (tx) => {
        if (!(await insertAccount(tx, account))) throw emailTakenAtSignUp();
        if (referrerId !== null) {
          await ports.addReferral(tx, account.id, referrerId, clock.now());
        }
        const added = await apiKeys.add(tx, account.id, { name: 'default', expires_at: undefined });
        return { key: added.key, credit: await welcome(tx, account) };
      });
      wakeMail();
      return {
        msg: 'success' as const,
        api_key: key,
        signup_credit_granted: credit > 0,
        user: await view(account),
      };
    },

    /** `client` is the User-Agent of the request. */
    async logIn({ email, password }: LoginUserDto, client: string | null) {
      const { account, session } = await logIn(normalEmail(email), password, client);
      return loggedIn(account, session);
    },

    /** Exchanges a single-use ticket for a session. Throws `ticket_invalid`. */
    async logInByTicket(ticket: string, client: string | null) {
      const { subjectId, session } = await logInTickets.exchange('user', ticket, client);
      return loggedIn(await accountOf(db, { accountId: subjectId }), session);
    },

    async me(caller: UserIdentity): Promise<User> {
      return view(await accountOf(db, caller));
    },

    /** Returns true if an account has exactly this address. */
    async exists(email: string): Promise<{ exists: boolean }> {
      return { exists: (await findAccountByEmail(db, normalEmail(email))) !== undefined };
    },

    async preference(caller: UserIdentity): Promise<UserPreference> {
      return preferenceOf(await accountOf(db, caller));
    },

    async clearDefaultTemplate(caller: UserIdentity): Promise<UserPreference> {
      const changes = { default_template_id: null, updated_at: clock.now() };
      await updateAccount(db, caller.accountId, changes);
      return preferenceOf(await accountOf(db, caller));
    },
  };
}

export type LogInDeps = {
  db: Database;
  sessions: Pick<Sessions, 'sign'>;
  passwords: Pick<Passwords, 'matches'>;
};

/**
 * Returns the function that begins a session. It throws the same `unauthorized`, after the same time, for an unknown
 * address and for a wrong password.
 */
export function createLogIn({ db, sessions, passwords }: LogInDeps) {
  return async (
    emailNorm: string,
    password: string,
    client: string | null,
  ): Promise<{ account: Account; session: SignedSession }> => {
    const account = await findAccountByEmail(db, emailNorm);
    const matches = await passwords.matches(password, account?.password_hash ?? null);
    if (account === undefined || !matches) throw invalidLogIn();
    const session = await sessions.sign('user', account.id, client);
    await db.transaction().execute(async (tx) => {
      const current = await lockAccount(tx, { accountId: account.id });
      // Rejects the compared password if it was changed during the comparison.
      if (current.password_hash !== account.password_hash) throw invalidLogIn();
      await session.store(tx);
    });
    return { account, session };
  };
}

function invalidLogIn(): ApiError {
  return new ApiError('unauthorized', 'Invalid email or password', {
    hint: 'Check both, or reset the password.',
  });
}

/** Finds an account by its address, ignoring case. */
export function findAccountByAddress(db: Db, email: string): Promise<Account | undefined> {
  return findAccountByEmail(db, normalEmail(email));
}

/** Returns the account's customer id at the payment processor; null if it has none. */
export async function paymentCustomerOf(db: Db, accountId: string): Promise<string | null> {
  return (await accountById(db, accountId))?.payment_customer_id ?? null;
}

export async function setPaymentCustomer(
  db: Db,
  accountId: string,
  customerId: string | null,
  nowMs: number,
): Promise<void> {
  await updateAccount(db, accountId, { payment_customer_id: customerId, updated_at: nowMs });
}

/** Links an account to a chat user; null unlinks it. Returns false if the chat user is linked to another account. */
export async function setChatUser(
  tx: Db,
  accountId: string,
  user: ChatUser | null,
  nowMs: number,
): Promise<boolean> {
  const holder = user === null ? undefined : await findAccountByChatUser(tx, user.id);
  if (holder !== undefined && holder.id !== accountId) return false;
  return updateAccount(tx, accountId, {
    chat_user_id: user?.id ?? null,
    chat_username: user?.username ?? null,
    updated_at: nowMs,
  });
}

const MIN_TERMINATION_HOURS = 1;
const MAX_TERMINATION_HOURS = 720;

/** Throws `ttl_invalid` for less than 1 or more than 720 hours. */
export function requireTerminationHours(hours: number): void {
  if (hours >= MIN_TERMINATION_HOURS && hours <= MAX_TERMINATION_HOURS) return;
  throw new ApiError(
    'ttl_invalid',
    `A pod ends between ${MIN_TERMINATION_HOURS} and ${MAX_TERMINATION_HOURS} hours from now`,
  );
}

/**
 * Hours after which a rental from `source` ends if the request states none; null: the rental does not end by itself.
 */
export function defaultTerminationHours(account: Account, source: Source): number | null {
  return terminationHoursOf(account)[source] ?? null;
}

const Hours = z.partialRecord(z.enum(SOURCES), z.number());

/** The account's default hours by source. */
export function terminationHoursOf(account: Account): z.output<typeof Hours> {
  return Hours.parse(JSON.parse(account.termination_hours_json));
}

/** Clients of the sign-up route read the message from a top-level `detail`. */
function emailTakenAtSignUp(): ApiError {
  const { code, message, hint } = emailTaken();
  return new ApiError(code, message, { hint, extra: { detail: message } });
}
