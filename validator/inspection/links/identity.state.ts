/** Decides whether the peer at an agent's address is the agent that its provider enrolled. Pure. */

import {
  endorsedPin,
  type IdentityDocument,
  isEnrolmentSigned,
} from '#shared/api/agent/identity.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import { PeerRefused, type Pin } from '#shared/tls/peer.ts';

/** Verified identity of an agent. */
export type KnownIdentity = {
  /** Hotkey of the provider that enrolled the agent. */
  hotkey: string;
  /** ed25519, hex. */
  publicKey: string;
  enrolledUntilMs: number;
};

export type IdentityContext = {
  executor: Pick<ExecutorToCheck, 'id' | 'miner_hotkey'>;
  /** Pin of the certificate that the peer presented; null over plain HTTP. */
  presented: Pin | null;
  /** Last verified identity; null for a new agent. */
  known: KnownIdentity | null;
  nowMs: number;
};

/**
 * Returns the identity to use from now on; throws PeerRefused. A known key stays valid after its enrolment expired,
 * because renters' pods depend on the agent. Another key needs an enrolment that expires later, so that a replaced key
 * cannot return.
 */
export function judgeIdentity(
  document: IdentityDocument,
  { executor, presented, known, nowMs }: IdentityContext,
): KnownIdentity {
  const { executor_id: id, public_key: publicKey } = document;
  if (id !== executor.id) throw new PeerRefused('IDENTITY_CHANGED', `executor ${id} answers`);
  if (presented !== null && endorsedPin(document, nowMs) !== presented) {
    throw new PeerRefused(
      'TLS_PIN_MISMATCH',
      `its identity document does not contain ${presented}`,
    );
  }
  const before = known?.hotkey === executor.miner_hotkey ? known : null;
  const enrolledUntilMs = enrolledUntil(document, executor);
  const next = { hotkey: executor.miner_hotkey, publicKey, enrolledUntilMs };
  if (before?.publicKey === publicKey) {
    return enrolledUntilMs > before.enrolledUntilMs ? next : before;
  }
  const isEnrolled = enrolledUntilMs > nowMs;
  if (before === null) {
    if (isEnrolled) return next;
    throw new PeerRefused(
      'NOT_ENROLLED',
      'its provider has not signed its key, or the enrolment has expired',
    );
  }
  if (isEnrolled && enrolledUntilMs > before.enrolledUntilMs) return next;
  throw new PeerRefused(
    'IDENTITY_CHANGED',
    'its key changed, and the enrolment of the new key does not expire later',
  );
}

/** Expiry of a valid enrolment of this key by this provider; 0 without an enrolment. */
function enrolledUntil(
  { enrolment, executor_id: id, public_key: publicKey }: IdentityDocument,
  executor: IdentityContext['executor'],
): number {
  const fits =
    enrolment !== null &&
    enrolment.executor_id === id &&
    enrolment.public_key === publicKey &&
    enrolment.hotkey === executor.miner_hotkey;
  return fits && isEnrolmentSigned(enrolment) ? enrolment.expires_ms : 0;
}
