/** The policy of checks as a validator goes by it: its modes are of checks, and of reasons, that there are. */

import { ConfigError } from '#shared/runtime/config.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';
import { type CheckPolicy, DEFAULT_CHECK_POLICY_FILE, readCheckPolicy } from './check-policy.ts';
import { CHECKS } from './check-table.ts';

/** What a line of `modes` may be for. */
const NAMES: readonly string[] = CHECKS.flatMap(({ id, remedies }) => [
  id,
  ...Object.keys(remedies).map((reason) => `${id} ${reason}`),
]);

/** Throws ConfigError that names the file and what is wrong with it: a mode of nothing would silently change nothing. */
export function readKnownCheckPolicy(path: string = DEFAULT_CHECK_POLICY_FILE): CheckPolicy {
  const policy = readCheckPolicy(path);
  const strange = Object.keys(policy.modes).find((name) => !NAMES.includes(name));
  if (strange === undefined) return policy;
  const nearest = nearestName(strange, NAMES);
  const hint = nearest === null ? '' : ` (did you mean "${nearest}"?)`;
  throw new ConfigError(
    `${path}: modes: "${strange}" is neither a check nor a check and one of its reasons${hint}`,
  );
}
