/** Sends one request to a webhook: to an address that was judged, once, without following anywhere. */
import { lookup as resolve } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from '#shared/http/addresses.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';
import type { PostWebhook } from '../../platform/ports.ts';

/** For the whole of it: name, connection, answer's head. */
const TIMEOUT_MS = 15_000;
const MAX_ERROR_CHARS = 300;

/** The name is resolved and judged in the very look-up of the connection: a second answer cannot lead elsewhere. */
export function createWebhookPost({
  clock,
  targets,
}: {
  clock: Clock;
  targets: Targets;
}): PostWebhook {
  const judged: LookupFunction = (hostname, options, found) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const refused = addresses?.find(({ address }) => !isAllowedAddress(address, targets));
      const [first] = addresses ?? [];
      if (error !== null) found(error, []);
      else if (refused !== undefined || first === undefined) found(forbidden(hostname), []);
      else if (options.all === true) found(null, addresses);
      else found(null, first.address, first.family);
    });
  };

  return async ({ url, headers, body }, signal) => {
    const startedMs = clock.monotonicMs();
    const durationMs = () => Math.round(clock.monotonicMs() - startedMs);
    try {
      const target = new URL(url);
      const host = bareHost(target);
      if (isIP(host) !== 0 && !isAllowedAddress(host, targets)) throw forbidden(host);
      const status = await post(target, body, {
        method: 'POST',
        headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
        lookup: judged,
        signal: clock.deadline(TIMEOUT_MS, signal),
        // A connection of its own: none is left open with somebody else's server.
        agent: false,
      });
      return { status, error: null, durationMs: durationMs() };
    } catch (error) {
      signal.throwIfAborted();
      const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
      return { status: null, error: text, durationMs: durationMs() };
    }
  };
}

function forbidden(host: string): Error {
  return new Error(`${host} leads to an address that webhooks are not sent to`);
}

/** The answer's status; its body is nobody's business and not read. */
function post(target: URL, body: string, options: RequestOptions): Promise<number> {
  const { promise, resolve: settle, reject } = Promise.withResolvers<number>();
  const send = target.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = send(target, options, (response) => {
    settle(response.statusCode ?? 0);
    response.destroy();
  });
  request.on('error', reject);
  request.end(body);
  return promise;
}

// MERGED validator/central/delivery/webhooks/webhook-post.ts: Where a webhook may lead: to public addresses over TLS, or on a laptop to this machine alone. Pure.
/** `public`: https to the internet. `loopback`: to this machine, for a marketplace on a laptop. */
export const TARGETS = ['public', 'loopback'] as const;
export type Targets = (typeof TARGETS)[number];

/** Whether a connection to this address, as a resolver gives it, is allowed. */
export function isAllowedAddress(address: string, targets: Targets): boolean {
  if (targets === 'loopback') return isLoopback(address);
  return isPublicAddress(address);
}

/** Why no webhook may have this URL; null when its address alone is left to judge. */
export function targetProblem(text: string, targets: Targets): string | null {
  const url = URL.parse(text);
  if (url === null) return 'is not a URL';
  if (url.username !== '' || url.password !== '') return 'holds a user name or password';
  if (targets === 'loopback') {
    if (!/^https?:$/.test(url.protocol)) return 'begins with neither http:// nor https://';
    return isLoopback(bareHost(url))
      ? null
      : 'leads away from this machine, which is not done here';
  }
  if (url.protocol !== 'https:') return 'does not begin with https://';
  const host = bareHost(url);
  if (isIP(host) !== 0 && !isAllowedAddress(host, targets)) {
    return 'leads to a private or reserved address';
  }
  return null;
}

/** IPv6 addresses without their brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}
