/** The agent answers signed requests at its address. */
import type { Check } from './check.ts';

export const reachabilityCheck: Check = {
  id: 'reachability',
  required: 'the agent answers within 15 s',
  judge({ inventory, transportError }) {
    if (inventory !== null) return { status: 'passed', measured: 'answered' };
    return {
      status: 'failed',
      reasonCode: 'AGENT_UNREACHABLE',
      measured: transportError ?? 'no answer',
      message: 'The agent did not answer',
      remediation: 'Start the agent and open its port (8080) to the validator.',
    };
  },
};
