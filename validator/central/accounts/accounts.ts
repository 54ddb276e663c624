/** The other half of the central API put together: accounts, keys, mails, uploads and links to other services. */
import type { HttpServer } from '#shared/http/server.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import { forgetBackups } from '../backups/backup.service.ts';
import { createMailJob } from '../delivery/mail/mail.job.ts';
import { registerOutboxRoute } from '../delivery/mail/mail.routes.ts';
import { registerObjectRoutes, registerUploadRoute } from '../delivery/uploads/object.routes.ts';
import { createObjects } from '../delivery/uploads/object.service.ts';
import { forgetWebhooks } from '../delivery/webhooks/webhook.service.ts';
import { createWebhookPost } from '../delivery/webhooks/webhook-post.ts';
import { createWebhookParts } from '../delivery/webhooks/webhooks.ts';
import { forgetBookmarks } from '../market/bookmarks/bookmark.service.ts';
import { forgetFeedback } from '../market/feedback/feedback.service.ts';
import { forgetMachineRequests } from '../market/machine-requests/machine-request.service.ts';
import { forgetChannels } from '../market/support-channels/support-channel.service.ts';
import { forgetTemplates } from '../market/templates/template.service.ts';
import {
  forgetHotkey,
  type ValidatorAccounts,
} from '../market/validators/validator-account.service.ts';
import { deleteVolumesOf } from '../market/volumes/volume.service.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import { createAccountRemoval } from './account/account.removal.ts';
import { registerAccountRoutes } from './account/account.routes.ts';
import { createAccounts, normalEmail } from './account/account.service.ts';
import { createAccountUpdate } from './account/account.update.ts';
import { createAccountTokens } from './account/account-token.service.ts';
import { createAddressHash } from './account/address-hash.ts';
import { createEmailVerification } from './account/email-verification.ts';
import { createPasswordReset } from './account/password-reset.ts';
import { createReferralPayout } from './account/referral-payout.ts';
import { registerApiKeyRoutes } from './api-keys/api-key.routes.ts';
import type { ApiKeys } from './api-keys/api-key.service.ts';
import { registerChatRoutes } from './chat/chat.routes.ts';
import { createChatLinks } from './chat/chat.service.ts';
import { forgetDockerCredentials } from './registry-logins/docker-credential.service.ts';
import { forgetSshKeys } from './ssh-keys/ssh-key.service.ts';

/** How often uploads that nobody wants any more are removed. */
const SWEEP_INTERVAL_MS = 600_000;

export type MembershipDeps = CentralDeps & {
  apiKeys: ApiKeys;
  validatorAccounts: ValidatorAccounts;
  /** Removes what surrounds the balance of an account that is being deleted. */
  forgetAround(tx: Db, accountId: string): Promise<void>;
};

/** Nothing runs and nothing is registered yet. */
export function createMembership({ apiKeys, validatorAccounts, ...deps }: MembershipDeps) {
  const { ports, options, sessions, passwords } = deps;
  const { db, clock, random, log, secret, mailer = null, objects: store = null } = ports;
  const { mails, forgetAround } = deps;
  const mailJob = mailer === null ? null : createMailJob({ db, clock, log, mails, mailer });
  const wakeMail = () => mailJob?.wake();
  const tokens = createAccountTokens({ clock, random });
  const addressHash = createAddressHash({ secret });
  const objects = createObjects({ db, clock, random, secret, store });
  const links = createChatLinks({ db, clock, random, secret, platform: ports.chat ?? null });
  const shared = { db, clock, random, options, sessions, passwords, mails, tokens, addressHash };
  const verification = createEmailVerification({ ...shared, wakeMail });

  const { webhookTargets: targets = 'public' } = options;
  const webhooks = createWebhookParts({
    ...{ db, clock, random, log, secret, mails, wakeMail, stopping: deps.stopping },
    ...{ targets, post: createWebhookPost({ clock, targets }) },
  });

  return {
    /** Routes below /api. */
    registerApi(api: HttpServer, idempotency: Idempotency): void {
      const account = {
        ...{ ...shared, apiKeys, verification, wakeMail },
        validatorAccounts,
      };
      const forget = [
        mails.forget,
        forgetAround,
        links.forget,
        forgetSshKeys,
        forgetDockerCredentials,
        forgetBookmarks,
        forgetFeedback,
        forgetChannels,
        forgetWebhooks,
        forgetHotkey,
        (tx: Db, accountId: string) => forgetBackups(tx, accountId, clock.now()),
        (tx: Db, accountId: string) => forgetTemplates(tx, accountId, clock.now()),
        (tx: Db, accountId: string) => deleteVolumesOf(tx, accountId, clock.now()),
        (tx: Db, accountId: string) => forgetMachineRequests(tx, accountId, clock.now()),
      ];
      const accounts = createAccounts(account);
      registerAccountRoutes(api, {
        accounts,
        update: createAccountUpdate(account),
        remove: createAccountRemoval({ ...account, forget }),
        verification,
        reset: createPasswordReset({ ...shared, wakeMail }),
        setReferralPayout: createReferralPayout({ ...shared, accounts }),
      });
      registerApiKeyRoutes(api, apiKeys);
      webhooks.register(api, idempotency);
      registerChatRoutes(api, links);
      registerUploadRoute(api, objects, options.publicOrigin ?? null);
      if (mailJob === null) registerOutboxRoute(api, mails);
    },

    /** Routes at the origin. */
    async registerOrigin(origin: HttpServer): Promise<void> {
      if (objects.isEmbedded) await registerObjectRoutes(origin, objects);
    },

    wakeMail,

    /** One pass over the mails that are due: tests call it instead of `startJobs`. */
    sendMails: async () => mailJob?.runOnce(),

    /** One turn for every webhook that has something to send: tests call it instead of `startJobs`. */
    sendWebhooks: () => webhooks.job.runOnce(),

    /** Counts an account's address as proven, with all that comes of it; does nothing for one that is. */
    verifyAccount: (email: string) => verification.accept(normalEmail(email)),

    /** What removes old rows. */
    sweeps: {
      mails: mails.sweep,
      tokens: tokens.sweep,
      'webhook-deliveries': webhooks.job.sweep,
    } satisfies Sweeps,

    /** One removal of uploads that nobody wants any more, which lie elsewhere. */
    sweepUploads: objects.sweep,

    startJobs(): { stop(): Promise<void> } {
      mailJob?.start();
      webhooks.job.start();
      const sweeping = startLoop({
        clock,
        intervalMs: SWEEP_INTERVAL_MS,
        run: objects.sweep,
        onError: (error) => log.error({ err: error }, 'sweeping uploads failed'),
      });
      return {
        async stop() {
          await Promise.all([mailJob?.stop(), webhooks.job.stop(), sweeping.stop()]);
        },
      };
    },
  };
}
