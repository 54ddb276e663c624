/** Every check of the validator, in the order of a run and of its report. */

import { DEFAULT_CHECK_POLICY_FILE } from '#shared/check/limits.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';
import * as agent from './agent.check.ts';
import { bandwidth } from './bandwidth.check.ts';
import type { Check } from './check.ts';
import { type CheckPolicy, readCheckPolicy } from './check-policy.ts';
import * as container from './container.check.ts';
import * as inventory from './gpu-inventory.check.ts';
import * as model from './gpu-model.check.ts';
import * as state from './gpu-state.check.ts';
import { hiddenRental } from './hidden-rental.check.ts';
import * as host from './host.check.ts';
import { gpuParts } from './mig.check.ts';
import * as network from './network.check.ts';
import * as offer from './offer.check.ts';
import * as proof from './proof.check.ts';
import { proofAge } from './proof-age.check.ts';
import { executorIdentity, reachability } from './reachability.check.ts';
import { rentalProbe, sshReach } from './rental.check.ts';
import * as rented from './rented-pods.check.ts';
import { renterReport } from './renter-report.check.ts';
import { agentUpdate, imageDigest } from './update.check.ts';

export const CHECKS: readonly Check[] = [
  reachability,
  executorIdentity,
  agent.answers,
  agent.agentVersion,
  imageDigest,
  agentUpdate,
  agent.clock,
  inventory.gpuInventory,
  model.gpuCount,
  model.gpuModel,
  model.gpuVram,
  gpuParts,
  model.gpuSourcesAgree,
  model.driverLibrary,
  model.driverMin,
  inventory.specStable,
  inventory.gpuUuidStable,
  inventory.gpuUuidUnique,
  state.gpuHealth,
  state.powerLimit,
  state.gpuWedge,
  state.gpuIdleUse,
  host.cpuTruth,
  host.memTruth,
  host.diskFloor,
  host.diskHealth,
  offer.banned,
  offer.collateral,
  offer.hostSideLoad,
  container.cpuQuota,
  host.diskQuota,
  host.backupEngine,
  container.dindRuntime,
  container.containerStart,
  network.ports,
  network.egress,
  network.templateCache,
  bandwidth,
  host.firewall,
  sshReach,
  rentalProbe,
  renterReport,
  hiddenRental,
  proof.powCpu,
  proof.powGpu,
  proof.powMem,
  proof.powDisk,
  proofAge,
  rented.gpuDrop,
  rented.gpuSideUse,
  rented.podAlive,
  rented.ledger,
];

/** One row of the table of checks. READMEs are generated from it. */
export type CheckRow = Pick<
  Check,
  'id' | 'detects' | 'required' | 'mode' | 'effect' | 'whileRented' | 'isTrial'
> & {
  remedies: readonly { reason: string; remedy: string }[];
};

export function describeChecks(): CheckRow[] {
  return CHECKS.map(({ id, detects, required, mode, effect, whileRented, isTrial, remedies }) => ({
    id,
    detects,
    required,
    mode,
    effect,
    whileRented,
    isTrial,
    remedies: Object.entries(remedies).map(([reason, remedy]) => ({ reason, remedy })),
  }));
}

/** Valid keys of `modes` in a policy: a check, or a check and one of its reasons. */
const MODE_KEYS: readonly string[] = CHECKS.flatMap(({ id, remedies }) => [
  id,
  ...Object.keys(remedies).map((reason) => `${id} ${reason}`),
]);

/**
 * Reads a policy and requires that its `modes` name existing checks and reasons: a misspelt key would have no effect.
 * Throws ConfigError that names the file and the fault.
 */
export function readKnownCheckPolicy(path: string = DEFAULT_CHECK_POLICY_FILE): CheckPolicy {
  const policy = readCheckPolicy(path);
  const unknown = Object.keys(policy.modes).filter((name) => !MODE_KEYS.includes(name));
  if (unknown.length === 0) return policy;
  const problems = unknown.map((name) => {
    const nearest = nearestName(name, MODE_KEYS);
    const hint = nearest === null ? '' : ` (did you mean "${nearest}"?)`;
    return `${path}: modes: "${name}" is neither a check nor a check and one of its reasons${hint}`;
  });
  throw new ConfigError(problems.join('\n  '));
}
