/** Composes webhooks: routes, the delivery job, and the notification of owners of disabled webhooks. */

import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import type { Database, Db, Webhook } from '../../platform/database/tables.ts';
import type { Idempotency } from '../../platform/idempotency/idempotency.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { PostWebhook } from '../../platform/ports.ts';
import { recordEvent } from '../events/event.service.ts';
import type { Mails } from '../mail/mail.service.ts';
import { webhookDisabledMail } from '../mail/mail-text.ts';
import { createDeliveries } from './delivery.service.ts';
import { createWebhookJob } from './webhook.job.ts';
import { registerWebhookRoutes } from './webhook.routes.ts';
import { createWebhooks } from './webhook.service.ts';
import { createWebhookSecrets } from './webhook-message.ts';
import type { Targets } from './webhook-post.ts';

const NOTICE_USEFUL_MS = 7 * 24 * 60 * 60 * 1000;

export type WebhookPartsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  secret: Uint8Array;
  /** Sends only to addresses that `targets` allows. */
  post: PostWebhook;
  targets: Targets;
  /** Shortest pause between two passes over the webhooks. */
  pollMs: number;
  mails: Mails;
  wakeMail(): void;
  stopping: AbortSignal;
};

/** Composes the parts; registers no route and starts no job. */
export function createWebhookParts(deps: WebhookPartsDeps) {
  const { db, clock, random, log, post, targets, pollMs, mails, wakeMail, stopping } = deps;
  const secrets = createWebhookSecrets(deps);

  async function notifyDisabled(
    tx: Db,
    { id, account_id: accountId, url }: Webhook,
    reason: 'gone' | 'failing',
  ): Promise<void> {
    const account = await accountOf(tx, { accountId });
    const { host } = new URL(url);
    await recordEvent(
      tx,
      { clock, random },
      {
        accountId,
        subEventType: 'account.failed',
        actor: SYSTEM_ACTOR,
        payload: { pod_name: null, node: null, detail: `webhook ${id} disabled`, error: reason },
      },
    );
    await mails.add(tx, {
      accountId,
      to: account.email,
      kind: 'webhook-disabled',
      content: webhookDisabledMail(host, reason),
      dedupeKey: `webhook-disabled:${random.uuid()}`,
      usefulForMs: NOTICE_USEFUL_MS,
    });
    wakeMail();
  }

  const job = createWebhookJob({ db, clock, random, log, secrets, post, pollMs, notifyDisabled });
  return {
    job,
    register(api: HttpServer, idempotency: Idempotency): void {
      registerWebhookRoutes(api, {
        webhooks: createWebhooks({ db, clock, random, secrets, targets }),
        deliveries: createDeliveries({ db, clock, secrets, post, stopping }),
        idempotency,
        clock,
      });
    },
  };
}
