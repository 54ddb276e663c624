/** The agent is not too old. */
import { compareVersions } from '#shared/runtime/version.ts';
import { failed, type Judge, passed, unknown } from './check.ts';

export const judgeAgentVersion: Judge = ({ inventory, policy }) => {
  const order = compareVersions(inventory.agent_version, policy.checks.min_agent_version);
  if (order === null) return unknown(inventory.agent_version);
  if (order >= 0) return passed(inventory.agent_version);
  return failed('AGENT_OUTDATED', inventory.agent_version, 'The agent is too old');
};
