/** Parses the inputs of a request: a JSON body in UTF-8, query parameters and its id. */
import type { IncomingHttpHeaders } from 'node:http';
import { parse } from 'node:querystring';
import { ApiError } from '../runtime/errors.ts';
import type { Random } from '../runtime/random.ts';
import type { HttpServer } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as received, which signatures cover; null without one. */
    rawBody: Uint8Array | null;
    /** Why the body is not JSON; thrown only after `verifyBody`, so that unauthenticated callers do not receive it. */
    bodyError: ApiError | null;
  }
}

/** Accepts only JSON bodies. An empty body counts as none, whatever its content type. */
export function acceptOnlyJson(server: HttpServer): void {
  server.decorateRequest('rawBody', null);
  server.decorateRequest('bodyError', null);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser<Buffer>(
    /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i,
    { parseAs: 'buffer' },
    (request, body, done) => {
      request.rawBody = body;
      if (body.length === 0) {
        done(null, undefined);
        return;
      }
      request.bodyError = encodingError(request.headers);
      if (request.bodyError !== null) {
        done(null, undefined);
        return;
      }
      try {
        done(null, parseJson(body));
      } catch (error) {
        request.bodyError = jsonError(error);
        done(null, undefined);
      }
    },
  );
}

/** Node reports JSON that is nested too deeply for its stack as RangeError. */
function jsonError(error: unknown): ApiError {
  return error instanceof RangeError
    ? new ApiError('bad_request', 'The request body is nested too deeply', {
        hint: 'Nest arrays and objects at most some hundred levels deep.',
      })
    : new ApiError('bad_request', 'The request body is not valid JSON', {
        hint: 'Send one JSON value in UTF-8.',
      });
}

const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]+)/i;
/** Accepted names of character sets; US-ASCII is a subset of UTF-8. */
const UTF_8 = /^(?:utf-?8|us-ascii)$/i;

/** Returns a 415 for a compressed body or another charset than UTF-8, else null. */
function encodingError(headers: IncomingHttpHeaders): ApiError | null {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers;
  if (coding.trim().toLowerCase() !== 'identity') {
    return unsupported('Compressed bodies are not read', 'Send the body without Content-Encoding.');
  }
  const [, charset = 'utf-8'] = CHARSET.exec(type) ?? [];
  if (UTF_8.test(charset)) return null;
  return unsupported('JSON is read in UTF-8 only', 'Send UTF-8, or name no charset.');
}

function unsupported(message: string, hint: string): ApiError {
  return new ApiError('client_error', message, { status: 415, hint });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Bodies without a match have no `__proto__` member, which could also be written with escapes. */
const MAY_HAVE_PROTO = /__proto__|\\u/;
/** Number of arrays and objects up to which a body cannot be nested too deeply. */
const FEW_NODES = 1_000;

/**
 * Drops `__proto__` members to prevent prototype pollution, and throws RangeError for deep nesting. The reviver does both
 * but multiplies the time, so a body that needs neither is parsed without.
 */
function parseJson(body: Uint8Array): unknown {
  const text = utf8.decode(body);
  if (nodesIn(body) <= FEW_NODES && !MAY_HAVE_PROTO.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value) => (key === '__proto__' ? undefined : value));
}

const [BRACKET, BRACE] = Buffer.from('[{');

/** Counts opening brackets, also those in strings: an upper limit for the depth. */
function nodesIn(body: Uint8Array): number {
  let count = 0;
  for (const byte of body) if (byte === BRACKET || byte === BRACE) count += 1;
  return count;
}

/**
 * Parses a query string. A blank parameter counts as absent, as browsers submit empty form fields: no number schema may
 * read it as 0. A repeated parameter becomes an array, which schemas reject.
 */
export function parseQuery(text: string): Record<string, unknown> {
  if (text === '') return {};
  const isSet = (value: unknown) => typeof value !== 'string' || value.trim() !== '';
  return Object.fromEntries(Object.entries(parse(text)).filter(([, value]) => isSet(value)));
}

const REQUEST_ID = /^[A-Za-z0-9_.:-]{8,64}$/;

/** Returns the client's X-Request-Id, or a new id if the header is missing, malformed or repeated. */
export function requestIdFrom(headers: IncomingHttpHeaders, random: Random): string {
  const id = headers['x-request-id'];
  return typeof id === 'string' && REQUEST_ID.test(id) ? id : random.uuid();
}
