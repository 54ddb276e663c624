/** Composes accounts: sign-up and profile, API keys, SSH keys, registry logins, secrets, notification settings, chat links. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Mails } from '../delivery/mail/mail.service.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Onboarding } from '../platform/ports.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import { registerAccountRoutes } from './account/account.routes.ts';
import { createAccounts, normalEmail } from './account/account.service.ts';
import type { AccountPorts } from './account/account-ports.ts';
import { createAccountRemoval } from './account/account-removal.ts';
import { createAccountTokens, createAddressHash } from './account/account-token.service.ts';
import { createAccountUpdate } from './account/account-update.ts';
import { createEmailVerification } from './account/email-verification.ts';
import { createPasswordReset } from './account/password-reset.ts';
import { createReferralPayout } from './account/referral-payout.ts';
import { registerApiKeyRoutes } from './api-keys/api-key.routes.ts';
import { registerChatRoutes } from './chat/chat.routes.ts';
import { createChatLinks } from './chat/chat.service.ts';
import type { Credentials } from './credentials.ts';
import { registerNotificationSettingRoutes } from './notification-settings/notification-setting.routes.ts';
import {
  createNotificationSettings,
  deleteNotificationSettings,
} from './notification-settings/notification-setting.service.ts';
import { registerPayoutAccountRoutes } from './payout-accounts/payout-account.routes.ts';
import { createPayoutAccounts } from './payout-accounts/payout-account.service.ts';
import { registerDockerCredentialRoutes } from './registry-logins/docker-credential.routes.ts';
import {
  createDockerCredentials,
  deleteDockerCredentials,
} from './registry-logins/docker-credential.service.ts';
import { registerSecretRoutes } from './secrets/secret.routes.ts';
import { createSecrets, deleteSecrets } from './secrets/secret.service.ts';
import { registerSshKeyRoutes } from './ssh-keys/ssh-key.routes.ts';
import { createSshKeys, deleteSshKeys } from './ssh-keys/ssh-key.service.ts';

export type AccountsModuleDeps = CentralDeps &
  Pick<Credentials, 'sessions' | 'passwords' | 'apiKeys'> & {
    mails: Mails;
    wakeMail(): void;
    /** Null if the payment processor pays no accounts. */
    onboarding: Onboarding | null;
    /** Functions of modules that import accounts. */
    above: AccountPorts;
    /** Deletes other modules' data of an account, in the transaction that removes the account. */
    deleteData: readonly ((tx: Db, accountId: string) => Promise<void>)[];
  };

/** Composes the module. The returned `registerApi` registers its routes. */
export function createAccountsModule({ apiKeys, above, deleteData, ...deps }: AccountsModuleDeps) {
  const { ports, options, sessions, passwords, mails, wakeMail } = deps;
  const { db, clock, random, secret } = ports;
  const tokens = createAccountTokens({ clock, random });
  const addressHash = createAddressHash({ secret });
  const links = createChatLinks({ db, clock, random, secret, platform: ports.chat ?? null });
  const shared = {
    db,
    clock,
    random,
    options,
    sessions,
    passwords,
    mails,
    wakeMail,
    tokens,
    addressHash,
  };
  const payoutAccounts = createPayoutAccounts({ db, clock, random, onboarding: deps.onboarding });
  const { grantSignupCredit, livePodsOf } = above;
  const verification = createEmailVerification({ ...shared, grantSignupCredit });

  return {
    /** Registers routes below /api. */
    registerApi(api: HttpServer): void {
      const account = { ...shared, apiKeys, verification, ports: above };
      const accounts = createAccounts(account);
      registerAccountRoutes(api, {
        accounts,
        update: createAccountUpdate(account),
        remove: createAccountRemoval({
          ...account,
          livePodsOf,
          deleteData: [
            links.deleteAccountData,
            deleteSshKeys,
            deleteDockerCredentials,
            deleteSecrets,
            deleteNotificationSettings,
            ...deleteData,
          ],
        }),
        verification,
        reset: createPasswordReset(shared),
        setReferralPayout: createReferralPayout({
          ...shared,
          accounts,
          requireOnboarded: payoutAccounts.requireOnboarded,
        }),
      });
      registerApiKeyRoutes(api, apiKeys);
      registerSshKeyRoutes(api, createSshKeys({ db, clock, random }));
      registerDockerCredentialRoutes(api, createDockerCredentials({ db, clock, random, secret }));
      registerSecretRoutes(api, createSecrets({ db, clock, random, secret }));
      registerNotificationSettingRoutes(api, createNotificationSettings({ db, clock, random }));
      registerChatRoutes(api, links);
      const { publicOrigin = null } = options;
      registerPayoutAccountRoutes(api, { accounts: payoutAccounts, publicOrigin });
    },

    /** Stores that the onboarding of a payout account is complete; false if no account has it. */
    completeOnboarding: payoutAccounts.complete,

    /** Marks an account's address as verified and grants the sign-up credit. No effect if it is verified already. */
    verifyAccount: (email: string) => verification.accept(normalEmail(email)),

    sweeps: { tokens: tokens.sweep } satisfies Sweeps,
  };
}
