/** The agent answers signed requests at its address, and signs its answers. */
import type { PeerRefusal } from '#shared/tls/peer-refused.ts';
import { type Check, refusedBecause } from './check.ts';

const UNREACHABLE = 'Start the agent and open its port (8080) to the validator.';
/** What an answer that was not believed is called; of the others the identity's check tells. */
const DISTRUSTED: Partial<Record<PeerRefusal, [message: string, remedy: string]>> = {
  RESPONSE_UNSIGNED: [
    'The answers are not signed with the key of the agent',
    'Let nothing between validator and agent change answers; update the agent.',
  ],
  TLS_PIN_MISMATCH: [
    'The certificate is not the agent’s',
    'Let nothing between validator and agent end TLS; give the agent its certificate to serve.',
  ],
  TLS_UNTRUSTED: ['It shows no certificate to know it by', 'Serve TLS 1.3 with a certificate.'],
  TLS_CERTIFICATE_EXPIRED: [
    'The certificate has expired',
    'Renew the files of AGENT_TLS_CERT, or set the clock of the host.',
  ],
};

export const reachabilityCheck: Check = {
  id: 'reachability',
  required: 'the agent answers within 15 s, as itself',
  judge({ inventory, transportError, refusal }) {
    if (inventory !== null) return { status: 'passed', measured: 'answered' };
    const measured = transportError ?? 'no answer';
    const distrusted = refusal === null ? undefined : DISTRUSTED[refusal];
    if (refusal !== null && distrusted !== undefined) {
      return refusedBecause(refusal, measured, ...distrusted);
    }
    if (refusal !== null) return { status: 'passed', measured: 'answered' };
    return refusedBecause('AGENT_UNREACHABLE', measured, 'The agent did not answer', UNREACHABLE);
  },
};
