/**
 * Transports to the gateway. The errors of an explained transport contain the observed cause, such as a wrong scheme in
 * CENTRAL_GATEWAY_URL.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { findPeerRefusal, type Pin } from '#shared/tls/peer.ts';
import { explainUrl } from '#shared/tls/port-protocol.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';

type GatewayVariables = { CENTRAL_GATEWAY_URL: string; CENTRAL_GATEWAY_PIN?: Pin | undefined };

/** Plain HTTP or TLS, depending on the address. Without a pin, the system's authorities verify the certificate. */
export function gatewayTransport(config: GatewayVariables, clock: Clock): Transport {
  if (new URL(config.CENTRAL_GATEWAY_URL).protocol === 'http:') return PLAIN_TRANSPORT;
  const { CENTRAL_GATEWAY_PIN: pin } = config;
  const transport = createSecureTransport({ trust: pin ?? 'authorities', clock });
  return pin === undefined ? withPinRemedy(transport) : transport;
}

const PIN_REMEDY =
  'set CENTRAL_GATEWAY_PIN to the pin of a self-signed certificate, which the validator logs at its start';

/** Adds the remedy to the error for a certificate that no authority has signed. */
function withPinRemedy(transport: Transport): Transport {
  return {
    ...transport,
    fetch: (url, init) =>
      transport.fetch(url, init).catch((error: unknown) => {
        const refusal = findPeerRefusal(error);
        if (refusal?.reason !== 'TLS_UNTRUSTED') throw error;
        throw new Error(`the gateway: ${refusal.message}; ${PIN_REMEDY}`, { cause: error });
      }),
  };
}

/** Time for which an observed cause is reused: each observation costs the gateway up to three connections. */
const REUSED_FOR_MS = 30_000;

export function explainedTransport(
  transport: Transport,
  { gatewayUrl, clock }: { gatewayUrl: string; clock: Clock },
): Transport {
  let last: { atMs: number; cause: Promise<string> } | null = null;

  function observedCause(): Promise<string> {
    const nowMs = clock.monotonicMs();
    if (last === null || nowMs - last.atMs > REUSED_FOR_MS) {
      last = { atMs: nowMs, cause: explainUrl(clock, gatewayUrl, 'the central API') };
    }
    return last.cause;
  }

  return {
    ...transport,
    async fetch(url, init) {
      try {
        return await transport.fetch(url, init);
      } catch (error) {
        // These errors name their cause.
        if (init.signal?.aborted === true || findPeerRefusal(error) !== null) throw error;
        // The address is left out, because renters may read the message.
        throw new Error(`the gateway: ${await observedCause()}`, { cause: error });
      }
    },
  };
}
