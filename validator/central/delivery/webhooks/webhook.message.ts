/** An event as a webhook's receiver gets it, signed. */
import type { Random } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import type { Webhook } from '../../platform/database/tables.ts';
import type { AtRest } from '../../platform/idempotency/idempotency.ts';
import type { WebhookRequest } from '../../platform/ports.ts';
import type { AccountEvent } from '../events/event.schemas.ts';
import { signingSecrets } from './webhook.rotation.ts';
import type { WebhookMessage } from './webhook.schemas.ts';
import { signedHeaders } from './webhook.signature.ts';

const AGENT_NAME = 'Podwright-Webhooks/1';

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;

/** Secrets at rest, and what is signed with them. */
export function createWebhookSecrets({ secret, random }: { secret: Uint8Array; random: Random }) {
  const sealing = createSealing({ key: deriveKey(secret, 'webhook-secret-sealing'), random });

  function secretsOf(row: Webhook, nowMs: number): string[] {
    return signingSecrets(row, nowMs).map((sealed) => sealing.open(sealed, row.id));
  }

  return {
    seal: (text: string, webhookId: string): string => sealing.seal(text, webhookId),

    /** For answers that hold a webhook's secret and are kept to be given again. */
    answersOf(webhookId: string): AtRest {
      const place = `answer:${webhookId}`;
      return {
        seal: (body) => sealing.seal(body, place),
        open: (kept) => sealing.open(kept, place),
      };
    },

    /** The event's id is the message's, at every attempt and replay: receivers know by it what they have had. */
    request(row: Webhook, event: AccountEvent, nowMs: number): WebhookRequest {
      const { sub_event_type: type, created_at: timestamp, id } = event;
      const message: WebhookMessage = { type, timestamp, data: event };
      const body = JSON.stringify(message);
      return {
        url: row.url,
        body,
        headers: {
          'content-type': 'application/json',
          'user-agent': AGENT_NAME,
          ...signedHeaders({ id, body, secrets: secretsOf(row, nowMs) }, nowMs),
        },
      };
    },
  };
}
