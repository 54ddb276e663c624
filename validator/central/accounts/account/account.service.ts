/** Accounts: sign-up, log-in, profile and preferences (specification, General; marketplace reference 1.16). */
import { z } from 'zod';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { rowFor, visibleTemplate } from '../../market/templates/template.service.ts';
import type { ValidatorAccounts } from '../../market/validators/validator-account.service.ts';
import { balanceOf } from '../../money/balance/balance.service.ts';
import {
  earnedByReferrals,
  noteReferral,
  referrerOf,
} from '../../money/referrals/referral.service.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { SOURCES, type Source, type UserIdentity } from '../../platform/identity.ts';
import type { ChatUser } from '../../platform/ports.ts';
import type { ApiKeys } from '../api-keys/api-key.service.ts';
import { accountById, accountOf } from '../auth/account-access.ts';
import type { Passwords } from '../auth/password.ts';
import type { Sessions } from '../auth/session.ts';
import type { CreateUserDto, LoginUserDto, User, UserPreference } from './account.schemas.ts';
import {
  findAccountByChatUser,
  findAccountByEmail,
  insertAccount,
  updateAccount,
} from './account.store.ts';
import { toUser } from './account.view.ts';
import type { AccountTokens } from './account-token.service.ts';
import type { EmailVerification } from './email-verification.ts';
import { createLogIn } from './log-in.ts';

export type AccountsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  options: { verifyEmailAtSignup: boolean };
  sessions: Sessions;
  passwords: Passwords;
  apiKeys: ApiKeys;
  verification: EmailVerification;
  mails: Mails;
  tokens: AccountTokens;
  validatorAccounts: ValidatorAccounts;
  /** Has waiting mails sent now. */
  wakeMail(): void;
};

/** 8 characters. */
const REFERRAL_CODE_BYTES = 6;
const EMAIL_TAKEN = 'User already exists with the same email';

export type Accounts = ReturnType<typeof createAccounts>;

/** Rules of accounts; changes of the profile are in account.update.ts. */
export function createAccounts(deps: AccountsDeps) {
  const { db, clock, random, options, passwords, apiKeys } = deps;
  const { verification, validatorAccounts, wakeMail } = deps;
  const logIn = createLogIn(deps);

  async function present(account: Account): Promise<User> {
    const balance = await balanceOf(db, account.id);
    const validatorHotkey = await validatorAccounts.hotkeyOf(db, account.id);
    const referralUusd = await earnedByReferrals(db, account.id);
    return toUser({ account, balance, validatorHotkey, referralUusd });
  }

  function newAccount({ email, name }: CreateUserDto, passwordHash: string): Account {
    const nowMs = clock.now();
    return {
      id: random.uuid(),
      email,
      email_norm: normalEmail(email),
      email_verified_at: options.verifyEmailAtSignup ? nowMs : null,
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
      deleted_at: null,
      created_at: nowMs,
      updated_at: nowMs,
    };
  }

  /** The credit where addresses need no proof, else the mail that asks for it: unproven ones would be free credit. */
  async function welcome(tx: Db, account: Account): Promise<number> {
    if (account.email_verified_at !== null) {
      return verification.grantCredit(tx, account.id, account.email_norm);
    }
    await verification.begin(tx, account);
    return 0;
  }

  return {
    async signUp(body: CreateUserDto) {
      if ((await findAccountByEmail(db, normalEmail(body.email))) !== undefined) {
        throw emailTakenAtSignUp();
      }
      const { referral_code: code } = body;
      const referrerId = code === undefined || code === '' ? null : await referrerOf(db, code);
      const account = newAccount(body, await passwords.hash(body.password));
      const { key, credit } = await moneyTransaction({ db, clock, random }, async (tx) => {
        if (!(await insertAccount(tx, account))) throw emailTakenAtSignUp();
        if (referrerId !== null) await noteReferral(tx, account.id, referrerId, clock.now());
        const added = await apiKeys.add(tx, account.id, { name: 'default', expires_at: undefined });
        return { key: added.key, credit: await welcome(tx, account) };
      });
      wakeMail();
      return {
        msg: 'success' as const,
        api_key: key,
        signup_credit_granted: credit > 0,
        user: await present(account),
      };
    },

    async logIn({ email, password }: LoginUserDto) {
      const { account, session } = await logIn(normalEmail(email), password);
      const { token, expiresAtMs } = session;
      return { user: await present(account), token, expires_at: naiveUtc(expiresAtMs) };
    },

    async me(caller: UserIdentity): Promise<User> {
      return present(await accountOf(db, caller));
    },

    /** Whether an account has exactly this address. */
    async exists(email: string): Promise<{ exists: boolean }> {
      return { exists: (await findAccountByEmail(db, normalEmail(email))) !== undefined };
    },

    async preference(caller: UserIdentity): Promise<UserPreference> {
      return preferenceOf(db, await accountOf(db, caller));
    },

    async clearDefaultTemplate(caller: UserIdentity): Promise<UserPreference> {
      const changes = { default_template_id: null, updated_at: clock.now() };
      await updateAccount(db, caller.accountId, changes);
      return preferenceOf(db, await accountOf(db, caller));
    },
  };
}

/** The account with this address, however it is written. */
export function findAccountByAddress(db: Db, email: string): Promise<Account | undefined> {
  return findAccountByEmail(db, normalEmail(email));
}

/** Who the account is at the payment processor; null when it is nobody there. */
export async function paymentCustomerOf(db: Db, accountId: string): Promise<string | null> {
  return (await accountById(db, accountId))?.payment_customer_id ?? null;
}

/** Notes who the account is at the payment processor. */
export async function setPaymentCustomer(
  db: Db,
  accountId: string,
  customerId: string | null,
  nowMs: number,
): Promise<void> {
  await updateAccount(db, accountId, { payment_customer_id: customerId, updated_at: nowMs });
}

/** Links an account to a chat user, or to none; false when another account has that user. */
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

/** Throws 400 `ttl_invalid` outside 1-720. */
export function requireTerminationHours(hours: number): void {
  if (hours >= MIN_TERMINATION_HOURS && hours <= MAX_TERMINATION_HOURS) return;
  throw new ApiError(
    'ttl_invalid',
    `A pod ends between ${MIN_TERMINATION_HOURS} and ${MAX_TERMINATION_HOURS} hours from now`,
  );
}

/** Hours after which a rental from `source` ends when it states none; null: never. */
export function defaultTerminationHours(account: Account, source: Source): number | null {
  return terminationHoursOf(account)[source] ?? null;
}

const Hours = z.partialRecord(z.enum(SOURCES), z.number());

/** The stored defaults, by source. */
export function terminationHoursOf(account: Account): z.output<typeof Hours> {
  return Hours.parse(JSON.parse(account.termination_hours_json));
}

/** The form in which addresses are compared. */
export function normalEmail(email: string): string {
  return email.trim().toLowerCase();
}

/** The refusal of an address that another account has. */
export function emailTaken(): ApiError {
  return new ApiError('bad_request', EMAIL_TAKEN, { hint: 'Log in or use another address.' });
}

/** Clients read this one refusal from a top-level `detail` (contract 2.3). */
function emailTakenAtSignUp(): ApiError {
  const { code, message, hint } = emailTaken();
  return new ApiError(code, message, { hint, extra: { detail: message } });
}

/** A default that is gone by now is shown as none. */
async function preferenceOf(db: Db, account: Account): Promise<UserPreference> {
  const { id, default_template_id: templateId } = account;
  const template = templateId === null ? undefined : await visibleTemplate(db, id, templateId);
  return {
    default_template_id: template?.id ?? null,
    default_template: template === undefined ? null : rowFor(id, template),
    default_termination_hours: terminationHoursOf(account),
  };
}
