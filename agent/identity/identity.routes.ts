/** The agent's identity: the public route GET /identity, whose content is signed, and signatures on responses. */

import {
  type Enrolment,
  endorseCertificate,
  IDENTITY_PATH,
  IdentityDocument,
} from '#shared/api/agent/identity.ts';
import type { HttpServer } from '#shared/http/server.ts';
import {
  type Identity,
  RESPONSE_SIGNATURE_HEADER,
  signResponse,
} from '#shared/signing/identity.ts';
import { SIGNATURE_HEADERS } from '#shared/signing/signed-request.ts';
import type { ListenerCertificate } from '#shared/tls/listener-certificate.ts';

export type IdentityPorts = {
  executorId: string;
  identity: Identity;
  /** Read at each request, because the provider may enrol while the agent runs. */
  readEnrolment(): Enrolment | null;
  /** The listener's present certificate; null if the listener is plain HTTP. */
  shown(): ListenerCertificate | null;
};

export function registerIdentityRoutes(server: HttpServer, ports: IdentityPorts): void {
  const { executorId, identity } = ports;
  server.get(IDENTITY_PATH, { schema: { response: { 200: IdentityDocument } } }, async () => ({
    executor_id: executorId,
    public_key: identity.publicKey,
    enrolment: ports.readEnrolment(),
    certificate: endorseCertificate(identity, executorId, ports.shown()),
  }));
}

const NONCE = /^[A-Za-z0-9_-]{22}$/;

/**
 * Signs every response to a request with a nonce, errors included. Streams are not signed and rely on TLS. Call before any
 * route is registered.
 */
export function signResponses(server: HttpServer, identity: Identity, executorId: string): void {
  server.addHook('onSend', async (request, reply, payload) => {
    const nonce = request.headers[SIGNATURE_HEADERS.nonce];
    if (typeof nonce !== 'string' || !NONCE.test(nonce)) return payload;
    const body = payload ?? '';
    if (typeof body !== 'string' && !(body instanceof Uint8Array)) return payload;
    const parts = { status: reply.statusCode, body, nonce, executorId };
    void reply.header(RESPONSE_SIGNATURE_HEADER, signResponse(identity, parts));
    return payload;
  });
}
