/** The agent that answers is the one that its provider enrolled under this executor id. */
import { type Check, type Outcome, refusedBecause } from './check.ts';

export const executorIdentityCheck: Check = {
  id: 'executor_identity',
  required: 'the key that the provider enrolled, under the executor id of the portal',
  judge({ inventory, identity, refusal, executor, transportError, receivedMs }) {
    const measured = transportError ?? 'no inventory';
    if (refusal === 'NOT_ENROLLED') return notEnrolled(measured);
    if (refusal === 'IDENTITY_CHANGED') return changed(measured, ENROL);
    if (inventory === null || identity === null) return { status: 'unknown', measured };
    if (inventory.executor_id !== executor.id) {
      const remedy = `Set AGENT_EXECUTOR_ID=${executor.id} on this host and restart the agent.`;
      return changed(inventory.executor_id, remedy);
    }
    if (identity.enrolledUntilMs <= receivedMs) return notEnrolled('its enrolment has ended');
    return { status: 'passed', measured: identity.publicKey };
  },
};

const ENROL = 'Enrol the agent anew: npm run agent -- enrol --help.';

function changed(measured: string, remedy: string): Outcome {
  return refusedBecause('IDENTITY_CHANGED', measured, 'Another agent answers', remedy);
}

function notEnrolled(measured: string): Outcome {
  return refusedBecause(
    'NOT_ENROLLED',
    measured,
    'The provider has not enrolled this agent',
    ENROL,
  );
}
