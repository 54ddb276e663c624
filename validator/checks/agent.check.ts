/** Checks of the agent itself: complete answers, its version, its clock. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { ok, unknown } from '#shared/check/check.ts';
import { compareVersions } from '#shared/runtime/version.ts';
import { defineCheck, fail, warn } from './check.ts';
import type { Unanswered } from './measured.ts';

/** Consecutive runs with an unanswered request at which the check fails. A single request may be lost. */
const UNANSWERED_IN_A_ROW = 3;

export const answers = defineCheck({
  id: 'answers',
  detects: 'an agent that answers but refuses inspection',
  required:
    'an answer to every request of an inspection: pods, a container, ports, a registry, proofs, the kernel’s data on processors and cards',
  category: 'policy',
  mode: 'shadow',
  whileRented: true,
  judge({ measured: { unanswered } }) {
    if (unanswered.length === 0) return ok('all that was asked');
    const measured = unanswered
      .map(({ question, problem }) => `${question}: ${problem}`)
      .join('; ');
    const message = 'The agent sends its inventory but does not answer other requests';
    const isRepeated = unanswered.every(({ repeated }) => repeated);
    const failure = fail('QUESTIONS_UNANSWERED', measured, message);
    return { ...failure, inARow: UNANSWERED_IN_A_ROW, isRepeated };
  },
  remedies: {
    QUESTIONS_UNANSWERED:
      'Update the agent. Give it read access to the host’s /sys and /proc/driver. Its log lists the requests that it refused or did not answer in time.',
  },
});

/**
 * Returns the sources that an inventory lacks although every genuine host can report them: the processors that Linux
 * lists, the cards on the PCI bus, and the cards that NVIDIA's driver lists. Memory may be missing (on a kernel without
 * NUMA nodes), and so may the disk (a file system on several devices or none), UUIDs of sleeping cards and the path of
 * the driver library.
 */
export function missingSources({ gpu, sources }: Inventory): Unanswered[] {
  const hasCards = gpu.driver === 'nvidia' && gpu.error === null && gpu.devices.length > 0;
  const onBus = sources?.pci_gpus ?? null;
  const missing = [
    (sources?.cpus_present ?? null) === null ? 'processors' : null,
    hasCards && onBus === null ? 'cards on the PCI bus' : null,
    hasCards && onBus !== 0 && (sources?.driver_gpus ?? null) === null
      ? 'cards of the driver'
      : null,
  ].filter((each) => each !== null);
  if (missing.length === 0) return [];
  const problem = `no kernel data on: ${missing.join(', ')}`;
  return [{ question: 'sources', problem, repeated: false }];
}

export const agentVersion = defineCheck({
  id: 'agent_version',
  detects: 'an agent that is too old',
  required: 'at least `min_agent_version` of the policy',
  category: 'env',
  whileRented: true,
  judge({ inventory, policy }) {
    const order = compareVersions(inventory.agent_version, policy.checks.min_agent_version);
    if (order === null) return unknown(inventory.agent_version);
    if (order >= 0) return ok(inventory.agent_version);
    return fail('AGENT_OUTDATED', inventory.agent_version, 'The agent is too old');
  },
  remedies: { AGENT_OUTDATED: 'Update the agent.' },
});

export const clock = defineCheck({
  id: 'clock',
  detects: 'a clock error, which affects signatures and bills',
  required:
    'a clock that differs by at most `clock_fail_ms` of the policy from the validator’s clock',
  category: 'env',
  whileRented: true,
  judge({ inventory, receivedMs, measured: { asked_ms }, policy }) {
    const { clock_warn_ms: warnMs, clock_fail_ms: failMs } = policy.checks;
    const at = inventory.collected_ms;
    // Zero if the host's clock shows a time between request and answer: a slow network does not count as skew.
    const skewMs = at - Math.min(Math.max(at, asked_ms), receivedMs);
    const measured = `${(skewMs / 1000).toFixed(1)} s`;
    if (Math.abs(skewMs) > failMs) {
      return fail('CLOCK_SKEW', measured, 'The clock of the host is wrong');
    }
    if (Math.abs(skewMs) <= warnMs) return ok(measured);
    return warn(measured, 'The clock of the host is drifting');
  },
  remedies: { CLOCK_SKEW: 'Enable time synchronisation (systemd-timesyncd or chrony).' },
});
