/** Composes the modules that send mails, webhooks, events and streams to people and programs, and the uploads. */
import type { HttpServer } from '#shared/http/server.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import type { CredentialWatch } from '../accounts/auth/credential-watch.ts';
import type { StreamTickets } from '../accounts/auth/stream-ticket.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import { registerEventRoutes, registerEventStreamRoutes } from './events/event.routes.ts';
import { createEventStreams } from './events/event-stream.ts';
import { createMailJob } from './mail/mail.job.ts';
import { registerOutboxRoute } from './mail/mail.routes.ts';
import { createMails, type Mails } from './mail/mail.service.ts';
import { registerPodLogRoutes } from './streams/pod-logs.routes.ts';
import { createPodLogs } from './streams/pod-logs.ts';
import type { PodAccess } from './streams/stream-guard.ts';
import { registerStreamTicketRoutes } from './streams/stream-ticket.routes.ts';
import { registerTerminalRoutes } from './streams/terminal.routes.ts';
import { createTerminals } from './streams/terminal.service.ts';
import { registerObjectRoutes, registerUploadRoute } from './uploads/object.routes.ts';
import { createObjects } from './uploads/object.service.ts';
import { deleteWebhooksOf } from './webhooks/webhook.service.ts';
import { createWebhookPost } from './webhooks/webhook-post.ts';
import { createWebhookParts } from './webhooks/webhooks.ts';

/** Interval of the removal of unused uploads. */
const SWEEP_INTERVAL_MS = 600_000;

/** Dependencies of modules that send mails. */
export type MailDeps = CentralDeps & {
  mails: Mails;
  /** Sends waiting mails now. Call this function after the commit. */
  wakeMail(): void;
};

export type DeliveryDeps = CentralDeps & {
  tickets: StreamTickets;
  credentials: CredentialWatch;
};

/** Composes the modules; registers no route and starts no job. */
export function createDelivery(deps: DeliveryDeps, pods: PodAccess) {
  const { ports, options, notifier, stopping, tickets, credentials } = deps;
  const { db, clock, random, log, secret, agents } = ports;
  const { mailer = null, objects: store = null } = ports;
  const mails = createMails({ db, clock, random, secret, isSent: mailer !== null });
  const mailJob = mailer === null ? null : createMailJob({ db, clock, log, mails, mailer });
  const wakeMail = () => mailJob?.wake();
  const objects = createObjects({ db, clock, random, secret, store });
  const { webhookTargets: targets = 'public' } = options;
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
    pollMs: options.pollMs ?? 0,
    post: createWebhookPost({ clock, targets }),
  });

  function registerStreams(api: HttpServer): void {
    const logs = createPodLogs({ db, clock, agents, pods, stopping });
    registerPodLogRoutes(api, { logs, credentials });
    const terminals = createTerminals({ db, clock, log, agents, pods, stopping });
    registerTerminalRoutes(api, { terminals, credentials });
    const events = createEventStreams({ db, clock, random, log, notifier, pods, stopping });
    registerEventStreamRoutes(api, { events, credentials });
    registerStreamTicketRoutes(api, {
      tickets,
      requireOwnPod: (accountId, podId) => pods.requireOwnPod(db, accountId, podId, clock.now()),
    });
  }

  return {
    mails,
    wakeMail,

    /** Registers the routes below /api. */
    registerApi(api: HttpServer, idempotency: Idempotency): void {
      registerEventRoutes(api, { db });
      webhooks.register(api, idempotency);
      registerUploadRoute(api, objects, options.publicOrigin ?? null);
      if (mailer === null) registerOutboxRoute(api, mails);
      registerStreams(api);
    },

    /** Registers the routes at the origin. */
    async registerOrigin(origin: HttpServer): Promise<void> {
      if (objects.isEmbedded) await registerObjectRoutes(origin, objects);
    },

    /** Runs one pass over the mails that are due. Tests call it instead of `startJobs`. */
    sendMails: async () => mailJob?.runOnce(),

    /** Runs one pass over the webhooks that have events to send. Tests call it instead of `startJobs`. */
    sendWebhooks: () => webhooks.job.runOnce(),

    /** Removes unused uploads once. Tests call it instead of `startJobs`. */
    sweepUploads: objects.sweep,

    sweeps: { mails: mails.sweep, 'webhook-deliveries': webhooks.job.sweep } satisfies Sweeps,

    /** Deletes the mails and webhooks of an account, in the transaction that removes the account. */
    async deleteAccountData(tx: Db, accountId: string): Promise<void> {
      await mails.forget(tx, accountId);
      await deleteWebhooksOf(tx, accountId);
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
