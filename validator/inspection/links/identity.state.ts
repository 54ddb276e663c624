/** Whether whoever answers at an agent's address is the agent that its provider enrolled (validator reference 3). Pure. */

import {
  endorsedPin,
  type IdentityDocument,
  isEnrolmentSigned,
} from '#shared/api/agent/identity.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import { PeerRefused, type Pin } from '#shared/tls/peer.ts';

/** What an agent is known by. */
export type KnownIdentity = {
  /** Of the provider who enrolled it. */
  hotkey: string;
  /** ed25519, hex. */
  publicKey: string;
  enrolledUntilMs: number;
};

export type IdentityContext = {
  executor: Pick<ExecutorToCheck, 'id' | 'miner_hotkey'>;
  /** Of the certificate that came with the document; null over plain HTTP. */
  shown: Pin | null;
  /** From before; null for an agent that is met for the first time. */
  known: KnownIdentity | null;
  nowMs: number;
};

/**
 * The identity to go by from now on; throws PeerRefused. A key that is known stays so after its enrolment has ended:
 * pods of renters are behind it. Another key takes a later enrolment, so that one that was replaced never comes back.
 */
export function judgeIdentity(
  document: IdentityDocument,
  { executor, shown, known, nowMs }: IdentityContext,
): KnownIdentity {
  const { executor_id: id, public_key: publicKey } = document;
  if (id !== executor.id) throw new PeerRefused('IDENTITY_CHANGED', `executor ${id} answers`);
  if (shown !== null && endorsedPin(document, nowMs) !== shown) {
    throw new PeerRefused('TLS_PIN_MISMATCH', `its identity does not vouch for ${shown}`);
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
    throw new PeerRefused('NOT_ENROLLED', 'its provider has not signed its key, or not for now');
  }
  if (isEnrolled && enrolledUntilMs > before.enrolledUntilMs) return next;
  throw new PeerRefused('IDENTITY_CHANGED', 'it has another key, and no later enrolment');
}

/** 0 without a valid enrolment of this very key by this very provider. */
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
