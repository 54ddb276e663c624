/** Composes sign-up, log-in, profile, mailed tokens, referral payout and removal of accounts. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Credentials } from '../credentials.ts';
import { registerAccountRoutes } from './account.routes.ts';
import { createAccounts } from './account.service.ts';
import type { AccountPorts } from './account-ports.ts';
import { createAccountRemoval } from './account-removal.ts';
import { createAccountTokens, createAddressHash } from './account-token.service.ts';
import { createAccountUpdate } from './account-update.ts';
import { normalEmail } from './email-address.ts';
import { createEmailVerification } from './email-verification.ts';
import { createMailRequests } from './mail-requests.ts';
import { createPasswordReset } from './password-reset.ts';
import { createReferralPayout, type ReferralPayoutDeps } from './referral-payout.ts';
import { registerSessionRoutes } from './session.routes.ts';

export type AccountPartsDeps = CentralDeps &
  Pick<Credentials, 'sessions' | 'logInTickets' | 'passwords' | 'apiKeys'> & {
    mails: Mails;
    wakeMail(): void;
    /** Functions of modules that import accounts. */
    above: AccountPorts;
    requireOnboarded: ReferralPayoutDeps['requireOnboarded'];
    /** Deletes the data of an account in other modules, in the transaction that removes the account. */
    deleteData: readonly ((tx: Db, accountId: string) => Promise<void>)[];
  };

export function createAccountParts(deps: AccountPartsDeps) {
  const { ports, options, sessions, logInTickets, passwords, apiKeys, mails, wakeMail, above } =
    deps;
  const { db, clock, random, secret, log } = ports;
  const { grantSignupCredit, livePodsOf } = above;
  const tokens = createAccountTokens({ clock, random });
  const addressHash = createAddressHash({ secret });
  const mailRequests = createMailRequests({ log });
  const shared = {
    db,
    clock,
    random,
    options,
    sessions,
    logInTickets,
    passwords,
    mails,
    wakeMail,
    tokens,
    addressHash,
    mailRequests,
  };
  const verification = createEmailVerification({ ...shared, grantSignupCredit });

  return {
    /** Registers the routes below /api. */
    register(api: HttpServer): void {
      const account = { ...shared, apiKeys, verification, ports: above };
      const accounts = createAccounts(account);
      registerSessionRoutes(api, { db, accounts, sessions, logInTickets });
      const { deleteData, requireOnboarded } = deps;
      registerAccountRoutes(api, {
        accounts,
        update: createAccountUpdate(account),
        remove: createAccountRemoval({ ...account, livePodsOf, deleteData }),
        verification,
        reset: createPasswordReset(shared),
        setReferralPayout: createReferralPayout({ ...shared, accounts, requireOnboarded }),
      });
    },

    /**
     * Marks an account's address as verified and grants the sign-up credit. Has no effect if the address is already
     * verified.
     */
    verify: (email: string) => verification.accept(normalEmail(email)),

    /** Resolves when the requested mails are stored. */
    settleMailRequests: mailRequests.settle,

    sweepTokens: tokens.sweep,
  };
}
