/** Sends one request to a webhook: to an address that was judged, once, without following anywhere. */
import { lookup as resolve } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import {
  bareHost,
  isAllowedAddress,
  type Targets,
} from '../../delivery/webhooks/target-address.ts';
import type { PostWebhook } from '../ports.ts';

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
