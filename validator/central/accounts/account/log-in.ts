/** How the owner of an account gets in: by its address and password. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Account, Database } from '../../platform/database/tables.ts';
import { holdAccount } from '../auth/account-access.ts';
import type { Passwords } from '../auth/password.ts';
import type { Sessions, SignedSession } from '../auth/session.ts';
import { findAccountByEmail } from './account.store.ts';

export type LogInDeps = {
  db: Database;
  sessions: Pick<Sessions, 'sign'>;
  passwords: Pick<Passwords, 'matches'>;
};

/** Returns the one function that begins a session. Unknown address and wrong password are told apart neither by answer nor by time. */
export function createLogIn({ db, sessions, passwords }: LogInDeps) {
  return async (
    emailNorm: string,
    password: string,
  ): Promise<{ account: Account; session: SignedSession }> => {
    const account = await findAccountByEmail(db, emailNorm);
    const matches = await passwords.matches(password, account?.password_hash ?? null);
    if (account === undefined || !matches) throw wrong();
    const session = await sessions.sign('user', account.id);
    await db.transaction().execute(async (tx) => {
      const now = await holdAccount(tx, { accountId: account.id });
      // Changed while it was compared: with the old one nobody gets in any more.
      if (now.password_hash !== account.password_hash) throw wrong();
      await session.store(tx);
    });
    return { account, session };
  };
}

function wrong(): ApiError {
  return new ApiError('unauthorized', 'Invalid email or password', {
    hint: 'Check both, or reset the password.',
  });
}
