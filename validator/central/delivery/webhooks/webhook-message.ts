/** Signed messages of webhooks: body, Standard Webhooks signature, and the rotation of secrets. */

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

/** Encrypts secrets at rest and builds signed requests. */
export function createWebhookSecrets({ secret, random }: { secret: Uint8Array; random: Random }) {
  const sealing = createSealing({ key: deriveKey(secret, 'webhook-secret-sealing'), random });

  function secretsOf(row: Webhook, nowMs: number): string[] {
    return signingSecrets(row, nowMs).map((sealed) => sealing.open(sealed, row.id));
  }

  return {
    seal: (text: string, webhookId: string): string => sealing.seal(text, webhookId),

    /** Returns the encryption of stored answers that contain a secret of this webhook or account. */
    answersOf(id: string): AtRest {
      const place = `answer:${id}`;
      return {
        seal: (body) => sealing.seal(body, place),
        open: (stored) => sealing.open(stored, place),
      };
    },

    /**
     * Builds the request for an event. The message id is the event's id in every attempt and replay, so that receivers
     * can drop duplicates.
     */
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

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;
const SECOND_MS = 1_000;

/** Returns a new secret in the form that receivers configure. */
export function makeSecret(random: Random): string {
  return PREFIX + Buffer.from(random.bytes(SECRET_BYTES)).toString('base64');
}

/**
 * Returns the headers of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, with one signature for each
 * secret, newest secret first.
 */
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

type Secrets = Pick<Webhook, 'secret_sealed' | 'replaced_json'>;

/** Time for which a replaced secret also signs, so that receivers can configure the new secret. */
const ROTATION_MS = 24 * 60 * 60 * 1000;
/** Maximum number of replaced secrets that sign. Each adds a signature to the header of every delivery. */
const MAX_REPLACED = 5;

/** Replaced secrets, newest first. */
const Replaced = z.array(z.object({ sealed: z.string(), untilMs: z.int() }));

function replacedOf({ replaced_json: json }: Secrets, nowMs: number): z.output<typeof Replaced> {
  return Replaced.parse(JSON.parse(json)).filter(({ untilMs }) => nowMs < untilMs);
}

/** Returns the encrypted secrets that sign, newest first. */
export function signingSecrets(row: Secrets, nowMs: number): string[] {
  return [row.secret_sealed, ...replacedOf(row, nowMs).map(({ sealed }) => sealed)];
}

/**
 * Returns the secret columns with `sealed` as the new secret. Throws `conflict` if too many replaced secrets still
 * sign.
 */
export function rotated(row: Secrets, sealed: string, nowMs: number): Secrets {
  const active = replacedOf(row, nowMs);
  const oldest = active.at(-1);
  if (oldest !== undefined && active.length >= MAX_REPLACED) {
    const from = naiveUtc(oldest.untilMs);
    throw new ApiError(
      'conflict',
      `The secret was rotated ${MAX_REPLACED} times within a day; the next rotation is possible from ${from}`,
      { hint: 'Use the secret of the last rotation, or retry at that time.' },
    );
  }
  const replaced = [{ sealed: row.secret_sealed, untilMs: nowMs + ROTATION_MS }, ...active];
  return { secret_sealed: sealed, replaced_json: JSON.stringify(replaced) };
}
