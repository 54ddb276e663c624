/**
 * Composes accounts: sign-up and profile, API keys, SSH keys, registry logins, secrets, notification settings, chat
 * links.
 */
import type { HttpServer } from '#shared/http/server.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { Onboarding } from '../platform/ports.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import { type AccountPartsDeps, createAccountParts } from './account/account-parts.ts';
import { registerApiKeyRoutes } from './api-keys/api-key.routes.ts';
import { registerChatRoutes } from './chat/chat.routes.ts';
import { createChatLinks } from './chat/chat.service.ts';
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

export type AccountsModuleDeps = Omit<AccountPartsDeps, 'requireOnboarded'> & {
  /** Null if the payment processor cannot pay accounts. */
  onboarding: Onboarding | null;
  idempotency: Idempotency;
};

/** Composes the module. The returned `registerApi` registers its routes. */
export function createAccountsModule({ onboarding, idempotency, ...deps }: AccountsModuleDeps) {
  const { ports, options, apiKeys } = deps;
  const { db, clock, random, secret } = ports;
  const once = { clock, idempotency };
  const links = createChatLinks({ db, clock, random, secret, platform: ports.chat ?? null });
  const payoutAccounts = createPayoutAccounts({ db, clock, random, onboarding });
  const account = createAccountParts({
    ...deps,
    requireOnboarded: payoutAccounts.requireOnboarded,
    deleteData: [
      links.deleteAccountData,
      deleteSshKeys,
      deleteDockerCredentials,
      deleteSecrets,
      deleteNotificationSettings,
      ...deps.deleteData,
    ],
  });

  return {
    /** Registers routes below /api. */
    registerApi(api: HttpServer): void {
      account.register(api);
      registerApiKeyRoutes(api, { ...once, keys: apiKeys });
      registerSshKeyRoutes(api, createSshKeys({ db, clock, random }));
      registerDockerCredentialRoutes(api, {
        ...once,
        credentials: createDockerCredentials({ db, clock, random, secret }),
      });
      registerSecretRoutes(api, createSecrets({ db, clock, random, secret }));
      registerNotificationSettingRoutes(api, createNotificationSettings({ db, clock, random }));
      registerChatRoutes(api, links);
      const { publicOrigin = null } = options;
      registerPayoutAccountRoutes(api, { accounts: payoutAccounts, publicOrigin });
    },

    /**
     * Stores that the onboarding of a payout account is complete; returns false if no account has this payout account.
     */
    completeOnboarding: payoutAccounts.complete,

    /** Marks an account's address as verified and grants the sign-up credit. Has no effect on a verified address. */
    verifyAccount: account.verify,

    /** Resolves when all mails that were requested so far are stored. */
    settleMailRequests: account.settleMailRequests,

    sweeps: { tokens: account.sweepTokens } satisfies Sweeps,
  };
}
