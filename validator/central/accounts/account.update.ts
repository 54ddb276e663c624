/** PUT /users/me: profile, default template, and with the password e-mail and password (contract 9.2). */
import { ApiError, refusedField } from '#shared/errors.ts';
import type { UserIdentity } from '../auth/identity.ts';
import type { Account } from '../db/tables.ts';
import { visibleTemplate } from '../templates/template.service.ts';
import type { UpdateUserDto, User } from './account.schemas.ts';
import { type AccountsDeps, accountOf, emailTaken, normalEmail } from './account.service.ts';
import { findAccountByEmail, updateAccount } from './account.store.ts';
import { toUser } from './account.view.ts';

export type AccountUpdate = ReturnType<typeof createAccountUpdate>;

/** Returns the one function that changes an account. */
export function createAccountUpdate(deps: Omit<AccountsDeps, 'random' | 'apiKeys'>) {
  const { db, clock, options, sessions, passwords, balanceOf } = deps;

  /** E-mail and password are what a thief of a key would change first. */
  async function refuseUnproven(caller: UserIdentity, account: Account, body: UpdateUserDto) {
    if (caller.credential.type !== 'session') {
      throw new ApiError('forbidden', 'An API key may not change e-mail or password', {
        hint: 'Log in and send the session token without an API key.',
      });
    }
    if (body.current_password === undefined) {
      throw refusedField('body.current_password', 'Field required', 'missing');
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
    // A record that is sent back whole carries the address unchanged: nothing to prove then.
    const changesEmail = body.email !== undefined && body.email !== account.email;
    if (!changesEmail && body.new_password === undefined) return {};
    await refuseUnproven(caller, account, body);
    const changes: Partial<Account> = {};
    if (body.new_password !== undefined) {
      changes.password_hash = await passwords.hash(body.new_password);
    }
    if (body.email !== undefined) {
      changes.email = body.email;
      changes.email_norm = normalEmail(body.email);
      if (changes.email_norm !== account.email_norm) {
        changes.email_verified_at = options.verifyEmailAtSignup ? clock.now() : null;
      }
    }
    return changes;
  }

  return async (caller: UserIdentity, body: UpdateUserDto): Promise<User> => {
    const account = await accountOf(db, caller);
    const changes: Partial<Account> = await credentialChanges(caller, account, body);
    if (body.name !== undefined) changes.name = body.name;
    const templateId = body.preference?.default_template_id;
    if (templateId !== undefined) changes.default_template_id = templateId;
    changes.updated_at = clock.now();

    await db.transaction().execute(async (tx) => {
      if (changes.email_norm !== undefined) {
        const holder = await findAccountByEmail(tx, changes.email_norm);
        if (holder !== undefined && holder.id !== account.id) throw emailTaken();
      }
      if (templateId != null) {
        const template = await visibleTemplate(tx, account.id, templateId);
        if (template === undefined) throw new ApiError('template_not_found', 'Template not found');
      }
      await updateAccount(tx, account.id, changes);
      if (changes.password_hash !== undefined && caller.credential.type === 'session') {
        await sessions.revokeAll(tx, 'user', account.id, caller.credential.sessionId);
      }
    });
    const balance = await balanceOf(db, account.id);
    return toUser({ ...account, ...changes }, balance, clock.now());
  };
}
