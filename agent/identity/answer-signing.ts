/** Signs every answer to a request that carries a nonce, refusals included; streams are left to TLS. */
import type { HttpServer } from '#shared/http/server.ts';
import { type Identity, RESPONSE_SIGNATURE_HEADER, signAnswer } from '#shared/signing/identity.ts';
import { SIGNATURE_HEADERS } from '#shared/signing/signed-request.ts';

const NONCE = /^[A-Za-z0-9_-]{22}$/;

/** Call before any route is registered. */
export function signAnswers(server: HttpServer, identity: Identity, executorId: string): void {
  server.addHook('onSend', async (request, reply, payload) => {
    const nonce = request.headers[SIGNATURE_HEADERS.nonce];
    if (typeof nonce !== 'string' || !NONCE.test(nonce)) return payload;
    const body = payload ?? '';
    if (typeof body !== 'string' && !(body instanceof Uint8Array)) return payload;
    const parts = { status: reply.statusCode, body, nonce, executorId };
    void reply.header(RESPONSE_SIGNATURE_HEADER, signAnswer(identity, parts));
    return payload;
  });
}
