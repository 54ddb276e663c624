/**
 * Sends requests to webhooks, only to allowed addresses: to public addresses over TLS, or during development to the
 * loopback interface.
 */
import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { isLocalName, isPublicAddress } from '#shared/http/addresses.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';
import type { PostWebhook } from '../../platform/ports.ts';

/** Deadline of name resolution, connection and response headers. */
const TIMEOUT_MS = 15_000;
const MAX_ERROR_CHARS = 300;

/** Resolves a host name to all its addresses, as `lookup` of node:dns does. */
export type ResolveAll = (
  hostname: string,
  options: LookupAllOptions,
  found: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export type WebhookPostDeps = {
  clock: Clock;
  targets: Targets;
  /** Default: the resolver of this host. */
  resolve?: ResolveAll;
};

/**
 * Sends one request and follows no redirect. The address is checked in the name lookup of the connection itself, so
 * that a second DNS answer cannot bypass the check.
 */
export function createWebhookPost({
  clock,
  targets,
  resolve = lookup,
}: WebhookPostDeps): PostWebhook {
  const checkedLookup: LookupFunction = (hostname, options, found) => {
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
        lookup: checkedLookup,
        signal: clock.deadline(TIMEOUT_MS, signal),
        // Without a connection pool, so that no connection to a receiver stays open.
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
  return new Error(`${host} resolves to an address to which webhooks are not sent`);
}

/** Sends the request and returns the response status. The body is not read. */
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

/** `public`: https to public addresses. `loopback`: to this host only, for a local marketplace. */
export const TARGETS = ['public', 'loopback'] as const;
export type Targets = (typeof TARGETS)[number];

/** Returns true if connections to this resolved address are allowed. */
export function isAllowedAddress(address: string, targets: Targets): boolean {
  if (targets === 'loopback') return isLoopback(address);
  return isPublicAddress(address);
}

/**
 * Returns the reason why a webhook cannot have this URL. Returns null if no reason is visible in the URL; the resolved
 * address must still be checked.
 */
export function targetProblem(text: string, targets: Targets): string | null {
  const url = URL.parse(text);
  if (url === null) return 'is not a URL';
  if (url.username !== '' || url.password !== '') return 'holds a user name or password';
  if (targets === 'loopback') {
    if (!/^https?:$/.test(url.protocol)) return 'begins with neither http:// nor https://';
    return isLoopback(bareHost(url))
      ? null
      : 'is not on this host, and this server sends webhooks to this host only';
  }
  if (url.protocol !== 'https:') return 'does not begin with https://';
  const host = bareHost(url);
  const isRefused = isIP(host) === 0 ? isLocalName(host) : !isAllowedAddress(host, targets);
  return isRefused ? 'leads to a private or reserved address' : null;
}

/** Returns the host name or address, IPv6 addresses without brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}
