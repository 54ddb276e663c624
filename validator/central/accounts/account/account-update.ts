/**
 * PUT /users/me: updates profile and preferences. With the current password, also updates e-mail address and password.
 */
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import { emailChangedMail } from '../../delivery/mail/mail-text.ts';
import type { Account, Db } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import type { Actor, UserIdentity } from '../../platform/identity.ts';
import { accountOf, lockAccount } from '../auth/account-access.ts';
import type { UpdateUserDto, User } from './account.schemas.ts';
import {
  type AccountsDeps,
  requireTerminationHours,
  terminationHoursOf,
} from './account.service.ts';
import { findAccountByEmail, updateAccount } from './account.store.ts';
import { recordAccountEvent } from './account-event.ts';
import { createAccountView } from './account-view.ts';
import { emailTaken, normalEmail } from './email-address.ts';
import { addPasswordNotice } from './password-reset.ts';

export type AccountUpdate = ReturnType<typeof createAccountUpdate>;

export function createAccountUpdate(deps: Omit<AccountsDeps, 'apiKeys'>) {
  const { db, clock, random, options, sessions, passwords } = deps;
  const { verification, mails, tokens, ports, wakeMail } = deps;
  const view = createAccountView(db, ports);

  /** Requires a session and the current password, so that a stolen API key cannot take over the account. */
  async function requirePassword(caller: UserIdentity, account: Account, body: UpdateUserDto) {
    if (caller.credential.type !== 'session') {
      throw new ApiError('forbidden', 'An API key may not change e-mail or password', {
        hint: 'Log in (POST /users/login) and send the session token without an API key.',
      });
    }
    if (body.current_password === undefined) {
      throw invalidField('body.current_password', 'Field required', 'missing');
    }
    if (!(await passwords.matches(body.current_password, account.password_hash))) {
      throw new ApiError('forbidden', 'The current password is wrong');
    }
  }

  async function credentialChanges(
    caller: UserIdentity,
    account: Account,
    body: UpdateUserDto,
  ): Promise<Partial<Account>> {
    // Clients may send the whole record, so an unchanged address withdraws a requested change only with the password.
    const withdraws = account.pending_email !== null && body.current_password !== undefined;
    const changesEmail = body.email !== undefined && (body.email !== account.email || withdraws);
    if (!changesEmail && body.new_password === undefined) return {};
    await requirePassword(caller, account, body);
    const changes: Partial<Account> = {};
    if (body.new_password !== undefined) {
      changes.password_hash = await passwords.hash(body.new_password);
      // The session that requested a change of the address may belong to an attacker with the old password.
      changes.pending_email = null;
    }
    const address =
      changesEmail && body.email !== undefined ? addressChanges(account, body.email) : {};
    return { ...changes, ...address };
  }

  /** A new address counts only after it is confirmed, unless `verifyEmailAtSignup` accepts addresses without a mail. */
  function addressChanges(account: Account, email: string): Partial<Account> {
    const emailNorm = normalEmail(email);
    if (emailNorm === account.email_norm) return { email, pending_email: null };
    if (!options.verifyEmailAtSignup) return { pending_email: email };
    const verified = { email_norm: emailNorm, email_verified_at: clock.now() };
    return { email, ...verified, pending_email: null };
  }

  /** Mails the notices and tokens of a changed or requested address. Returns the text of the event; null for none. */
  async function afterEmailChange(
    tx: Db,
    before: Account,
    after: Account,
    requested: string | null,
  ): Promise<string | null> {
    if (after.email_norm !== before.email_norm) {
      await tokens.endAll(tx, after.id);
      await verification.addNotice(tx, before, emailChangedMail(after.email));
      return 'e-mail address changed';
    }
    const isWithdrawn = before.pending_email !== null && after.pending_email === null;
    if (requested === null) return isWithdrawn ? 'e-mail address change withdrawn' : null;
    await verification.beginChange(tx, before, requested);
    return 'e-mail address change requested';
  }

  /** Ends the account's other sessions and mails a notice. */
  async function afterPasswordChange(
    tx: Db,
    caller: UserIdentity,
    account: Account,
  ): Promise<void> {
    const { credential } = caller;
    const present = credential.type === 'session' ? credential.sessionId : null;
    await sessions.revokeAll(tx, 'user', account.id, present);
    await tokens.endAll(tx, account.id, ['reset-password']);
    await addPasswordNotice(tx, mails, account, random);
  }

  async function requireTemplate(tx: Db, account: Account, templateId: string | null | undefined) {
    if (templateId == null) return;
    const template = await ports.templateFor(tx, account.id, templateId);
    if (template === null) throw new ApiError('template_not_found', 'Template not found');
  }

  return async (caller: UserIdentity, body: UpdateUserDto, actor: Actor): Promise<User> => {
    const checked = await accountOf(db, caller);
    const proven = await credentialChanges(caller, checked, body);
    const changed = await moneyTransaction({ db, clock, random }, async (tx) => {
      const before = await lockAccount(tx, caller);
      if (before.password_hash !== checked.password_hash) {
        throw new ApiError('conflict', 'The account was changed at the same time');
      }
      const requested = proven.pending_email ?? null;
      await requireFreeAddress(tx, before, proven.email ?? requested);
      await requireTemplate(tx, before, body.preference?.default_template_id);
      const changes = {
        ...profileChanges(before, body),
        ...proven,
        updated_at: clock.now(),
      };
      if (!(await updateAccount(tx, before.id, changes))) throw emailTaken();
      const after = { ...before, ...changes };
      const address = await afterEmailChange(tx, before, after, requested);
      const details = address === null ? [] : [address];
      if (proven.password_hash !== undefined) {
        await afterPasswordChange(tx, caller, after);
        details.push('password changed');
      }
      if (body.validator_proof !== undefined) {
        await ports.validators.link(tx, after.id, body.validator_proof);
        details.push(body.validator_proof === null ? 'validator unlinked' : 'validator linked');
      }
      for (const detail of details) {
        await recordAccountEvent(tx, { clock, random }, after.id, actor, detail);
      }
      return after;
    });
    wakeMail();
    return view(changed);
  };
}

/** Returns the changes of the profile that need no password. */
function profileChanges(account: Account, body: UpdateUserDto): Partial<Account> {
  const changes: Partial<Account> = {};
  if (body.name !== undefined) changes.name = body.name;
  if (body.company_name !== undefined) changes.company_name = body.company_name;
  if (body.avatar_url !== undefined) changes.avatar_url = body.avatar_url;
  if (body.disable_incoming_connections !== undefined) {
    changes.disable_incoming_connections = body.disable_incoming_connections ? 1 : 0;
  }
  const { default_template_id: templateId, default_termination_hours: hours } =
    body.preference ?? {};
  if (templateId !== undefined) changes.default_template_id = templateId;
  if (hours !== undefined) changes.termination_hours_json = mergedHours(account, hours);
  return changes;
}

type HoursBySource = NonNullable<
  NonNullable<UpdateUserDto['preference']>['default_termination_hours']
>;

/** Merges hours by rental source into the account's defaults; null removes a default. Throws `ttl_invalid`. */
function mergedHours(account: Account, changes: HoursBySource): string {
  const merged = Object.entries({ ...terminationHoursOf(account), ...changes }).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  );
  for (const [, hours] of merged) requireTerminationHours(hours);
  return JSON.stringify(Object.fromEntries(merged));
}

async function requireFreeAddress(tx: Db, account: Account, email: string | null) {
  if (email === null) return;
  const holder = await findAccountByEmail(tx, normalEmail(email));
  if (holder !== undefined && holder.id !== account.id) throw emailTaken();
}
