/** Composes mail, webhooks and uploads, with their jobs. */
import type { HttpServer } from '#shared/http/server.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import { createMailJob } from './mail/mail.job.ts';
import { registerOutboxRoute } from './mail/mail.routes.ts';
import { registerObjectRoutes, registerUploadRoute } from './uploads/object.routes.ts';
import { createObjects } from './uploads/object.service.ts';
import { forgetWebhooks } from './webhooks/webhook.service.ts';
import { createWebhookPost } from './webhooks/webhook-post.ts';
import { createWebhookParts } from './webhooks/webhooks.ts';

/** Time between two removals of expired uploads. */
const SWEEP_INTERVAL_MS = 600_000;

/** Starts no jobs and registers no routes. */
export function createMessaging({ ports, options, mails, stopping }: CentralDeps) {
  const { db, clock, random, log, secret, mailer = null, objects: store = null } = ports;
  const mailJob = mailer === null ? null : createMailJob({ db, clock, log, mails, mailer });
  const wakeMail = () => mailJob?.wake();
  const objects = createObjects({ db, clock, random, secret, store });
  const { webhookTargets: targets = 'public' } = options;
  const post = createWebhookPost({ clock, targets });
  const webhooks = createWebhookParts({
    db,
    clock,
    random,
    log,
    secret,
    mails,
    wakeMail,
    stopping,
    targets,
    post,
  });

  return {
    /** Registers routes below /api. */
    registerApi(api: HttpServer, idempotency: Idempotency): void {
      webhooks.register(api, idempotency);
      registerUploadRoute(api, objects, options.publicOrigin ?? null);
      if (mailJob === null) registerOutboxRoute(api, mails);
    },

    /** Registers routes at the origin. */
    async registerOrigin(origin: HttpServer): Promise<void> {
      if (objects.isEmbedded) await registerObjectRoutes(origin, objects);
    },

    /** Sends waiting mails now. */
    wakeMail,

    /** Runs one pass over the mails that are due. For tests, which do not start jobs. */
    sendMails: async () => mailJob?.runOnce(),
    /** Runs one pass over the webhooks that have something to send. For tests. */
    sendWebhooks: () => webhooks.job.runOnce(),
    /** Removes expired uploads. For tests. */
    sweepUploads: objects.sweep,

    sweeps: { mails: mails.sweep, 'webhook-deliveries': webhooks.job.sweep } satisfies Sweeps,

    /** Deletes mails and webhooks of an account that is being removed. */
    async deleteAccountData(tx: Db, accountId: string): Promise<void> {
      await mails.forget(tx, accountId);
      await forgetWebhooks(tx, accountId);
    },

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
