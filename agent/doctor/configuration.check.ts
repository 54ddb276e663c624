/** Checks of the agent's configuration: variables, executor id, trusted keys, the provider's policy. */

import { fail, ok, warn } from '#shared/check/check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import {
  ConfigError,
  type Environment,
  inspectConfig,
  parseConfig,
} from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { AGENT_CONFIG, type AgentConfig, readConfig } from '../config.ts';
import { readPolicyFile } from '../pods/provider-policy.ts';

export type ConfigurationFacts = {
  /** Used by the other checks. Invalid variables are replaced by their defaults. */
  config: AgentConfig;
  /** Null if the variable is missing or invalid. */
  executorId: string | null;
  /** One sentence per invalid variable. */
  problems: readonly string[];
  /** One sentence per unknown variable. */
  unknown: readonly string[];
  /** Null without a policy file. */
  policy: { path: string; problem: string | null } | null;
};

/** Placeholder for an unknown executor id. No marketplace issues it. */
export const NO_EXECUTOR = '00000000-0000-0000-0000-000000000000';

export function readConfiguration(environment: Environment): ConfigurationFacts {
  const { config, problems, names } = readValidPart(environment);
  const executorId = names.has('AGENT_EXECUTOR_ID') ? null : config.AGENT_EXECUTOR_ID;
  const unknown = inspectConfig(AGENT_CONFIG, environment).warnings.map(({ message }) => message);
  return { config, executorId, problems, unknown, policy: readPolicy(config) };
}

/** Replaces invalid variables by their defaults, so that one of them does not prevent the other checks. */
function readValidPart(environment: Environment) {
  try {
    return { config: readConfig(environment), problems: [], names: new Set<string>() };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const names = new Set(error.problems.map(({ name }) => name));
    const valid = Object.entries(environment).filter(([name]) => !names.has(name));
    // Rules across variables are not checked again: `problems` already contains their violations.
    const { schema, prefix } = AGENT_CONFIG;
    const variables = { AGENT_EXECUTOR_ID: NO_EXECUTOR, ...Object.fromEntries(valid) };
    const config = parseConfig({ schema, prefix }, variables);
    return { config, problems: error.problems.map(({ message }) => message), names };
  }
}

function readPolicy({ AGENT_POLICY: path }: AgentConfig): ConfigurationFacts['policy'] {
  if (path === undefined) return null;
  try {
    readPolicyFile(path);
    return { path, problem: null };
  } catch (error) {
    return { path, problem: messageOf(error) };
  }
}

export const CONFIGURATION_CHECKS: readonly DoctorCheck<ConfigurationFacts>[] = [
  {
    id: 'configuration',
    detects: 'variables that are invalid or misspelt',
    required: 'every AGENT_* variable is known and valid',
    judge({ problems, unknown }) {
      const remedy = 'correct them; npm run agent -- --help lists all variables';
      if (problems.length > 0) return fail([...problems, ...unknown].join('; '), remedy);
      if (unknown.length > 0) return warn(unknown.join('; '), remedy);
      return ok('every AGENT_* variable is valid');
    },
  },
  {
    id: 'executor-id',
    detects: 'an agent without the id of its executor',
    required: 'AGENT_EXECUTOR_ID is the id from the portal',
    judge({ executorId }) {
      if (executorId !== null) return ok(executorId);
      const remedy =
        'add the node in the portal (POST /portal/executors) and set AGENT_EXECUTOR_ID to its id';
      return fail('AGENT_EXECUTOR_ID is not set to an id', remedy);
    },
  },
  {
    id: 'trusted-keys',
    detects: 'an agent that no validator can command',
    required: 'at least one key with the role validator-control',
    judge({ config: { AGENT_TRUSTED_KEYS: keys } }) {
      const remedy = 'AGENT_TRUSTED_KEYS=<validator’s ss58>=validator-control';
      if (keys.length === 0) return fail('no key is trusted: the agent accepts no command', remedy);
      const inControl = keys.filter(({ roles }) => roles.includes('validator-control')).length;
      const measured = `${keys.length} trusted keys, ${inControl} with the role validator-control`;
      if (inControl === 0) return fail(`${measured}: no key may launch pods`, remedy);
      return ok(measured);
    },
  },
  {
    id: 'policy',
    detects: 'a policy file that prevents the agent’s start',
    required: 'a valid policy file, or none',
    judge({ policy: file }) {
      if (file === null) return ok('no policy file: all resources of the host may be rented');
      if (file.problem === null) return ok(`${file.path} is valid`);
      return fail(file.problem, 'correct the file: the agent does not start with it');
    },
  },
];
