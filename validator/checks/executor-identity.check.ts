/** The agent that answers is the one that its provider enrolled under this executor id. */
import { type Facts, failed, type Judge, type Outcome, passed, unknown } from './check.ts';

export const judgeIdentity: Judge = ({ inventory, identity, executor, receivedMs }) => {
  if (identity === null) return unknown('no identity');
  if (inventory.executor_id !== executor.id) {
    const remedy = `Set AGENT_EXECUTOR_ID=${executor.id} on this host and restart the agent.`;
    return { ...changed(inventory.executor_id), remedy };
  }
  if (identity.enrolledUntilMs <= receivedMs) return notEnrolled('its enrolment has ended');
  return passed(identity.publicKey);
};

/** Of an executor without an inventory. */
export function judgeIdentityUnseen({ refusal, transportError }: Facts): Outcome {
  const measured = transportError ?? 'no inventory';
  if (refusal === 'NOT_ENROLLED') return notEnrolled(measured);
  return refusal === 'IDENTITY_CHANGED' ? changed(measured) : unknown(measured);
}

const changed = (measured: string) => failed('IDENTITY_CHANGED', measured, 'Another agent answers');

const notEnrolled = (measured: string) =>
  failed('NOT_ENROLLED', measured, 'The provider has not enrolled this agent');
