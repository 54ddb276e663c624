/** The signature of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`. Pure. */
import { createHmac } from 'node:crypto';
import type { Random } from '#shared/runtime/random.ts';

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
