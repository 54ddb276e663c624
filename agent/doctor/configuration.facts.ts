/** The agent's configuration as far as it is right: a wrong variable is named, and the host checked all the same. */

import { ConfigError, lookAtConfig, parseConfig } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { AGENT_CONFIG, type AgentConfig, readConfig } from '../config.ts';
import { readPolicyFile } from '../pods/provider-policy.ts';

export type ConfigurationFacts = {
  /** What is used for the other checks: wrong variables have their defaults. */
  config: AgentConfig;
  /** Null where the variable is missing or wrong. */
  executorId: string | null;
  /** One sentence per wrong variable. */
  problems: readonly string[];
  /** One sentence per variable that nobody reads. */
  unknown: readonly string[];
  /** Null without a policy file. */
  policy: { path: string; problem: string | null } | null;
};

/** Stands in where the executor's id is not known; no marketplace gives it. */
export const NOBODY = '00000000-0000-0000-0000-000000000000';

type Environment = Record<string, string | undefined>;

export function readConfiguration(environment: Environment): ConfigurationFacts {
  const { config, problems, names } = readWhatIsRight(environment);
  const executorId = names.has('AGENT_EXECUTOR_ID') ? null : config.AGENT_EXECUTOR_ID;
  const unknown = lookAtConfig(AGENT_CONFIG, environment).warnings.map(({ message }) => message);
  return { config, executorId, problems, unknown, policy: policyOf(config) };
}

function readWhatIsRight(environment: Environment) {
  try {
    return { config: readConfig(environment), problems: [], names: new Set<string>() };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const names = new Set(error.problems.map(({ name }) => name));
    const right = Object.entries(environment).filter(([name]) => !names.has(name));
    // What variables have to be like together is told by then.
    const { schema, prefix } = AGENT_CONFIG;
    const given = { AGENT_EXECUTOR_ID: NOBODY, ...Object.fromEntries(right) };
    const config = parseConfig({ schema, prefix }, given);
    return { config, problems: error.problems.map(({ message }) => message), names };
  }
}

function policyOf({ AGENT_POLICY: path }: AgentConfig): ConfigurationFacts['policy'] {
  if (path === undefined) return null;
  try {
    readPolicyFile(path);
    return { path, problem: null };
  } catch (error) {
    return { path, problem: messageOf(error) };
  }
}
