/** Bodies of requests: JSON in UTF-8 and nothing else; why one was not read is told once its request is let in. */
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from '../runtime/errors.ts';
import type { Random } from '../runtime/random.ts';
import type { HttpServer } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The exact bytes of the body as received; null without one. Signatures cover these. */
    rawBody: Uint8Array | null;
    /** Why the body is no JSON; thrown only after `verifyBody` has passed. */
    bodyError: ApiError | null;
  }
}

/** An empty body counts as none whatever its content type says (contract 2). */
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
      request.bodyError = encodingRefusal(request.headers);
      if (request.bodyError !== null) {
        done(null, undefined);
        return;
      }
      try {
        done(null, parseJson(body));
      } catch {
        request.bodyError = new ApiError('bad_request', 'The request body is not valid JSON', {
          hint: 'Send one JSON value in UTF-8.',
        });
        done(null, undefined);
      }
    },
  );
}

const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]+)/i;
/** US-ASCII is a part of it. */
const UTF_8 = /^(?:utf-?8|us-ascii)$/i;

/** Why a body of these headers is not read, 415; null where it is plain UTF-8. */
function encodingRefusal(headers: IncomingHttpHeaders): ApiError | null {
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

/** Drops `__proto__` members, so that no schema sees a polluted object. */
function parseJson(body: Uint8Array): unknown {
  return JSON.parse(utf8.decode(body), (key, value) => (key === '__proto__' ? undefined : value));
}

// MERGED shared/http/request-input.ts: X-Request-Id: a client's own id is kept when well formed, otherwise one is made (specification, Errors).
const WELL_FORMED = /^[A-Za-z0-9_.:-]{8,64}$/;

/** Never fails: a malformed, repeated or missing header gives a fresh id. */
export function requestIdFrom(headers: IncomingHttpHeaders, random: Random): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED.test(given) ? given : random.uuid();
}
