/** Accounts: sign-up, log-in, profile and preferences (specification, General; marketplace reference 1.16). */
import { type Clock, naiveUtc } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import { type Random, randomToken } from '#shared/random.ts';
import type { ApiKeys } from '../api-keys/api-key.service.ts';
import type { UserIdentity } from '../auth/identity.ts';
import type { Passwords } from '../auth/password.ts';
import type { Sessions } from '../auth/session.ts';
import type { Account, Database, Db } from '../db/tables.ts';
import type { CentralOptions } from '../ports.ts';
import { toTemplateRow, visibleTemplate } from '../templates/template.service.ts';
import type { CreateUserDto, LoginUserDto, User, UserPreference } from './account.schemas.ts';
import { findAccount, findAccountByEmail, insertAccount, updateAccount } from './account.store.ts';
import { type Balance, toUser } from './account.view.ts';

/** What an account has at this moment; runs in the transaction that `db` is, if it is one. */
export type BalanceOf = (db: Db, accountId: string) => Promise<Balance>;

export type AccountsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  options: CentralOptions;
  sessions: Sessions;
  passwords: Passwords;
  apiKeys: ApiKeys;
  balanceOf: BalanceOf;
};

/** 8 characters. */
const REFERRAL_CODE_BYTES = 6;
const EMAIL_TAKEN = 'User already exists with the same email';

export type Accounts = ReturnType<typeof createAccounts>;

/** Rules of accounts; changes of the profile are in account.update.ts. */
export function createAccounts(deps: AccountsDeps) {
  const { db, clock, random, options, sessions, passwords, apiKeys, balanceOf } = deps;

  async function present(account: Account): Promise<User> {
    return toUser(account, await balanceOf(db, account.id), clock.now());
  }

  function newAccount({ email, name }: CreateUserDto, passwordHash: string): Account {
    const nowMs = clock.now();
    const verified = options.verifyEmailAtSignup;
    return {
      id: random.uuid(),
      email,
      email_norm: normalEmail(email),
      email_verified_at: verified ? nowMs : null,
      password_hash: passwordHash,
      name: name ?? email.slice(0, email.indexOf('@')),
      // Granted on verification: unverified addresses would be free credit for anybody.
      balance_uusd: verified ? options.signupCreditUusd : 0,
      default_template_id: null,
      referral_code: randomToken(random, REFERRAL_CODE_BYTES),
      created_at: nowMs,
      updated_at: nowMs,
    };
  }

  return {
    async signUp(body: CreateUserDto) {
      if ((await findAccountByEmail(db, normalEmail(body.email))) !== undefined) {
        throw emailTakenAtSignUp();
      }
      const account = newAccount(body, await passwords.hash(body.password));
      const key = await db.transaction().execute(async (tx) => {
        if (!(await insertAccount(tx, account))) throw emailTakenAtSignUp();
        return (await apiKeys.add(tx, account.id, { name: 'default', expires_at: undefined })).key;
      });
      return {
        msg: 'success' as const,
        api_key: key,
        signup_credit_granted: account.balance_uusd > 0,
        user: await present(account),
      };
    },

    /** Unknown address and wrong password are told apart neither by answer nor by time. */
    async logIn({ email, password }: LoginUserDto) {
      const account = await findAccountByEmail(db, normalEmail(email));
      const matches = await passwords.matches(password, account?.password_hash ?? null);
      if (account === undefined || !matches) {
        throw new ApiError('unauthorized', 'Invalid email or password', {
          hint: 'Check both, or reset the password.',
        });
      }
      const { token, expiresAtMs } = await sessions.issue(db, 'user', account.id);
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

/** The caller's row; a credential without an account cannot be. */
export async function accountOf(db: Db, caller: UserIdentity): Promise<Account> {
  const account = await findAccount(db, caller.accountId);
  if (account === undefined) throw new Error(`account ${caller.accountId} is missing`);
  return account;
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
    default_template: template === undefined ? null : toTemplateRow(template),
    default_termination_hours: {},
  };
}
