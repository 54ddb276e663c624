/** An event as a webhook's receiver gets it, signed. */

import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import type { Webhook } from '../../platform/database/tables.ts';
import type { AtRest } from '../../platform/idempotency/idempotency.ts';
import type { WebhookRequest } from '../../platform/ports.ts';
import type { AccountEvent } from '../events/event.schemas.ts';
import type { WebhookMessage } from './webhook.schemas.ts';

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

// MERGED validator/central/delivery/webhooks/webhook-message.ts: The signature of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`. Pure.
const PREFIX = 'whsec_';
const SECRET_BYTES = 32;
const SECOND_MS = 1_000;

/** A new secret, as its receiver configures it. */
export function makeSecret(random: Random): string {
  return PREFIX + Buffer.from(random.bytes(SECRET_BYTES)).toString('base64');
}

/** The headers that go with `body`; one signature for each secret, the newest first. */
export function signedHeaders(
  { id, body, secrets }: { id: string; body: string; secrets: readonly string[] },
  nowMs: number,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / SECOND_MS));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
    const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
    return `v1,${mac}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}

// MERGED validator/central/delivery/webhooks/webhook-message.ts: Which secrets of a webhook sign: the present one, and each before it for a day since it was replaced. Pure.
type Secrets = Pick<Webhook, 'secret_sealed' | 'replaced_json'>;

/** How long a replaced secret is signed with too: receivers change theirs meanwhile. */
const ROTATION_MS = 24 * 60 * 60 * 1000;
/** Each is one more signature in the header of every delivery. */
const MAX_REPLACED = 5;

/** The newest first. */
const Replaced = z.array(z.object({ sealed: z.string(), untilMs: z.int() }));

function replacedOf({ replaced_json: json }: Secrets, nowMs: number): z.output<typeof Replaced> {
  return Replaced.parse(JSON.parse(json)).filter(({ untilMs }) => nowMs < untilMs);
}

/** Sealed, the newest first. */
export function signingSecrets(row: Secrets, nowMs: number): string[] {
  return [row.secret_sealed, ...replacedOf(row, nowMs).map(({ sealed }) => sealed)];
}

/** The columns with `sealed` as the present secret. Throws `conflict` when too many sign beside it. */
export function rotated(row: Secrets, sealed: string, nowMs: number): Secrets {
  const kept = replacedOf(row, nowMs);
  const oldest = kept.at(-1);
  if (oldest !== undefined && kept.length >= MAX_REPLACED) {
    const from = naiveUtc(oldest.untilMs);
    throw new ApiError(
      'conflict',
      `The secret was rotated ${MAX_REPLACED} times within a day; the next rotation is possible from ${from}`,
      { hint: 'Use the secret of the last rotation, or wait until then.' },
    );
  }
  const replaced = [{ sealed: row.secret_sealed, untilMs: nowMs + ROTATION_MS }, ...kept];
  return { secret_sealed: sealed, replaced_json: JSON.stringify(replaced) };
}
