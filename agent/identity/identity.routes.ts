/** GET /identity, public: nothing in it is secret, and all that matters in it is signed. */

import {
  certificateNote,
  type Enrolment,
  IDENTITY_PATH,
  IdentityDocument,
} from '#shared/api/agent/identity.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Identity } from '#shared/signing/identity.ts';
import type { ListenerCertificate } from '#shared/tls/listener-certificate.ts';

export type IdentityPorts = {
  executorId: string;
  identity: Identity;
  /** Read at each request: a provider enrols while the agent runs. */
  readEnrolment(): Enrolment | null;
  /** What the listener shows now; null where it is plain. */
  shown(): ListenerCertificate | null;
};

export function registerIdentityRoutes(server: HttpServer, ports: IdentityPorts): void {
  const { executorId, identity } = ports;
  server.get(IDENTITY_PATH, { schema: { response: { 200: IdentityDocument } } }, async () => ({
    executor_id: executorId,
    public_key: identity.publicKey,
    enrolment: ports.readEnrolment(),
    certificate: certificateNote(identity, executorId, ports.shown()),
  }));
}
