/** The agent that answers is the one enrolled under this executor id. */
import type { Check } from './check.ts';

export const executorIdentityCheck: Check = {
  id: 'executor_identity',
  required: 'the agent runs under the executor id of the portal',
  judge({ inventory, executor }) {
    if (inventory === null) return { status: 'unknown', measured: 'no inventory' };
    if (inventory.executor_id === executor.id) {
      return { status: 'passed', measured: inventory.executor_id };
    }
    return {
      status: 'failed',
      reasonCode: 'IDENTITY_CHANGED',
      measured: inventory.executor_id,
      message: 'Another executor answers at this address',
      remediation: `Set AGENT_EXECUTOR_ID=${executor.id} on this host and restart the agent.`,
    };
  },
};
