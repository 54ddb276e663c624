/** Enrols a stand-in agent and signs its answers, so that validators accept it. */
import { signEnrolment } from '#shared/api/agent/identity.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { type Identity, identityFrom } from '#shared/signing/identity.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import {
  type IdentityPorts,
  registerIdentityRoutes,
  signResponses,
} from '../../../agent/identity/identity.routes.ts';

/** Year 2248: later than any test's clock. */
const ENROLLED_UNTIL_MS = 2 ** 43;

/** Enrols the agent on this server. Call it before any other route is registered. */
export function enrolAgent(
  server: HttpServer,
  executorId: string,
  provider: LocalSigner,
): Identity {
  const identity = identityFrom(new Uint8Array(32).fill(9));
  const { publicKey: public_key } = identity;
  const request = { executor_id: executorId, public_key, expires_ms: ENROLLED_UNTIL_MS };
  const enrolment = signEnrolment(request, provider);
  const readEnrolment = () => enrolment;
  identifyAs(server, { executorId, identity, shown: () => null, readEnrolment });
  return identity;
}

/** Registers the identity routes and signs the server's answers. */
export function identifyAs(server: HttpServer, ports: IdentityPorts): void {
  signResponses(server, ports.identity, ports.executorId);
  registerIdentityRoutes(server, ports);
}
