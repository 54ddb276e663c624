/** Renters under chaos: they repeat each request until the central API has answered it, as a careful client does. */
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';

/**
 * Time limit of an answer: longer than every outage together with the time in which a process that lost its database
 * recovers.
 */
const ANSWERED_WITHIN_MS = 240_000;
const TRY_WITHIN_MS = 30_000;
const RETRY_EVERY_MS = 700;
/** Refusals that end by themselves. */
const TEMPORARY = new Set(['idempotency_in_progress', 'rate_limited']);

/** Transfers keep the balance near the threshold, so that charges occur during the whole run. */
const AUTO_TOP_UP = {
  enabled: true,
  threshold_usd: 48,
  amount_usd: 5,
  payment_method_id: 'sim_ok',
};

export type Answer = { status: number; code: string; body: Record<string, unknown> };
/** `key` is the Idempotency-Key; a new one if it is absent. */
export type Call = (method: string, path: string, body?: unknown, key?: string) => Promise<Answer>;

export type ChaosAccount = {
  index: number;
  id: string;
  email: string;
  apiKey: string;
  templateId: string;
  /** Sends a request with one Idempotency-Key until it is answered. Rejects when there is no answer for minutes. */
  call: Call;
};

/** Creates an account with an SSH key, an automatic top-up, and a template that has one volume. */
export async function createAccount(origin: string, index: number): Promise<ChaosAccount> {
  const email = `renter-${index}@example.com`;
  const anonymous = callerAt(origin, {});
  const signedUp = await must(anonymous('POST', '/auth/signup', { email, password: 'a long one' }));
  const apiKey = String(signedUp['api_key']);
  const call = callerAt(origin, { 'x-api-key': apiKey });
  const { publicKey } = createSshKeyPair(systemRandom, 'chaos');
  await must(call('POST', '/ssh-keys', { name: 'chaos', public_key: publicKey }));
  const template = await must(
    call('POST', '/templates', {
      name: 'chaos',
      docker_image: 'podwright.local/base',
      docker_image_tag: '1',
      internal_ports: [22],
      volumes: ['/workspace'],
    }),
  );
  await must(call('PUT', '/users/me/auto-top-up', AUTO_TOP_UP));
  const { id } = signedUp['user'] as { id: string };
  return { index, id, email, apiKey, templateId: String(template['id']), call };
}

async function must(answering: Promise<Answer>): Promise<Record<string, unknown>> {
  const { status, body } = await answering;
  if (status < 300) return body;
  throw new Error(`${status} ${JSON.stringify(body)}`);
}

/**
 * Returns a function that repeats a request until it is answered. `onTry` receives every answer, also those after which
 * it repeats the request.
 */
export function callerAt(
  origin: string,
  headers: Record<string, string>,
  onTry: (answer: Answer) => void = () => undefined,
): Call {
  return async (method, path, body, key = systemRandom.uuid()) => {
    const request = {
      method,
      headers: {
        ...headers,
        'idempotency-key': key,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const giveUpMs = systemClock.monotonicMs() + ANSWERED_WITHIN_MS;
    for (;;) {
      const answer = await once(`${origin}/api${path}`, request);
      onTry(answer);
      if (answer.status !== 0 && answer.status < 500 && !TEMPORARY.has(answer.code)) return answer;
      if (systemClock.monotonicMs() > giveUpMs) {
        throw new Error(`${method} ${path}: not answered: ${JSON.stringify(answer)}`);
      }
      await systemClock.sleep(RETRY_EVERY_MS);
    }
  };
}

/** Status 0: there was no complete answer. */
async function once(url: string, request: RequestInit): Promise<Answer> {
  try {
    const signal = systemClock.deadline(TRY_WITHIN_MS);
    const response = await fetch(url, { ...request, signal });
    const body = (await response.json()) as Record<string, unknown>;
    const { code = '' } = (body['error'] ?? {}) as { code?: string };
    return { status: response.status, code, body };
  } catch (error) {
    return { status: 0, code: String(error), body: {} };
  }
}
