/** Judges the agent's configuration: variables, identity, who may command, the provider's policy. Pure. */

import { type Finding, fail, ok, warn } from '#shared/check/finding.ts';
import type { ConfigurationFacts } from './configuration.facts.ts';

export function configurationFindings(facts: ConfigurationFacts): Finding[] {
  return [variables(facts), executorId(facts), trustedKeys(facts), policy(facts)];
}

function variables({ problems, unknown }: ConfigurationFacts): Finding {
  const id = 'configuration';
  const remedy = 'correct them; npm run agent -- --help names all variables';
  if (problems.length > 0) return fail(id, [...problems, ...unknown].join('; '), remedy);
  if (unknown.length > 0) return warn(id, unknown.join('; '), remedy);
  return ok(id, 'every AGENT_* variable is understood');
}

function executorId({ executorId: id }: ConfigurationFacts): Finding {
  if (id !== null) return ok('executor-id', id);
  const remedy =
    'add the node in the portal (POST /portal/executors) and set AGENT_EXECUTOR_ID to its id';
  return fail('executor-id', 'AGENT_EXECUTOR_ID is not set to an id', remedy);
}

function trustedKeys({ config }: ConfigurationFacts): Finding {
  const id = 'trusted-keys';
  const keys = config.AGENT_TRUSTED_KEYS;
  const remedy = 'AGENT_TRUSTED_KEYS=<validator’s ss58>=validator-control';
  if (keys.length === 0)
    return fail(id, 'no key is trusted: nobody can command this agent', remedy);
  const inControl = keys.filter(({ roles }) => roles.includes('validator-control')).length;
  const what = `${keys.length} trusted, ${inControl} in control`;
  if (inControl === 0) return fail(id, `${what}: no key may launch pods`, remedy);
  return ok(id, what);
}

function policy({ policy: file }: ConfigurationFacts): Finding {
  const id = 'policy';
  if (file === null) return ok(id, 'no policy file: what the host can give may be rented');
  if (file.problem === null) return ok(id, `${file.path} is understood`);
  return fail(id, file.problem, 'correct the file: the agent does not start with it');
}
