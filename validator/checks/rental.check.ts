/** Checks that a renter receives what is offered: a rental probe from launch to removal, and SSH while a pod runs. */
import { ok, unknown } from '#shared/check/check.ts';
import { type CheckOutcome, defineCheck, type Facts, fail, READ_LOG_AND_RESTART } from './check.ts';
import type { RentalFacts, RentalStep } from './measured.ts';

/** Consecutive failures at which the check fails: a network may be down for a short time. */
const UNREACHABLE_IN_A_ROW = 2;
/** Consecutive skipped probes at which the check fails: by then the market has recorded new and ended rentals. */
const SKIPPED_IN_A_ROW = 3;

/** A slow start is measured again before it counts. */
const SLOW_START = { inARow: 2, isWithholding: true };

const STEPS: Record<RentalStep, [message: string, remedy: string]> = {
  launch: [
    'The agent did not accept a pod',
    'Run "npm run agent -- doctor", and read the log of the agent.',
  ],
  ready: [
    'A pod did not start with a working login',
    'Read the log of the agent; check that the SSH gateway runs (podwright-ssh-gateway).',
  ],
  login: [
    'A login to a pod from outside failed',
    'Forward the range of pod ports (AGENT_PORT_RANGE) to the host, each to the same number.',
  ],
  command: [
    'A command in a pod returned no output or a wrong one',
    'Read the logs of SSH gateway and Docker.',
  ],
  inside: [
    'A pod has fewer resources than offered',
    'Correct the record in the portal; reinstall the NVIDIA container toolkit if cards are missing.',
  ],
  remove: ['A pod could not be removed', 'Read the log of the agent; restart Docker if it hangs.'],
};

export const rentalProbe = defineCheck({
  id: 'rental_probe',
  detects: 'a host that passes other checks but cannot be rented',
  required: 'a test rental succeeds: launch, login, command, offered cards and limits, removal',
  category: 'runtime',
  mode: 'shadow',
  isTrial: true,
  judge(facts) {
    const { rental } = facts.measured;
    if (rental === null) return unknown('not run');
    if (rental.status === 'not_run') return judgeSkipped(rental, facts);
    if (rental.step === null) return ok(`${rental.ms} ms`);
    const [message, remedy] = STEPS[rental.step];
    const measured = `${rental.step}: ${rental.detail}`;
    const failure = { ...fail('RENTAL_PROBE_FAILED', measured, message), remedy };
    const again = { isRepeated: rental.repeated };
    // The first pod of a host may wait for a pull, or for a busy disk.
    if (rental.step === 'ready') return { ...failure, ...again, ...SLOW_START };
    return { ...failure, ...again };
  },
  remedies: {
    RENTAL_PROBE_FAILED: 'See the step that failed.',
    RENTAL_PROBE_SKIPPED:
      'Compare the agent’s pods and `orphans` with the market; `npm run agent -- remove-all` removes every pod.',
  },
});

/**
 * Fails a host that avoids the probe: it refuses the probe, or has a pod that is neither rented nor a probe of this
 * validator.
 */
function judgeSkipped(
  { detail, pods, refused, repeated }: RentalFacts,
  facts: Facts,
): CheckOutcome {
  const { executor, measured } = facts;
  const { pod_ids: rented } = executor;
  const again = { inARow: SKIPPED_IN_A_ROW, isRepeated: repeated };
  if (refused) {
    const failure = fail('RENTAL_PROBE_SKIPPED', detail, 'The agent refuses the rental probe');
    return { ...failure, ...again, remedy: READ_LOG_AND_RESTART };
  }
  if (rented === null) return unknown(`not run: ${detail}`);
  const known = new Set([...rented, ...measured.own_pods]);
  const unrented = pods.filter((id) => !known.has(id));
  if (unrented.length === 0) return unknown(`not run: ${detail}`);
  const message = 'A pod without a rental prevents the rental probe';
  return { ...fail('RENTAL_PROBE_SKIPPED', unrented.join(', '), message), ...again };
}

export const sshReach = defineCheck({
  id: 'ssh_reach',
  detects: 'pods whose SSH port does not answer',
  required: 'the SSH port of a pod answers 90 s after the start of the pod',
  category: 'env',
  mode: 'shadow',
  whileRented: true,
  judge({ measured: { ssh } }) {
    if (ssh === null || ssh.length === 0) return unknown('no pod to connect to');
    const failed = ssh.filter(({ problem }) => problem !== null);
    if (failed.length === 0) return ok(`${ssh.length} answer`);
    const measured = failed.map(({ pod, problem }) => `${pod}: ${problem}`).join('; ');
    const failure = fail('POD_SSH_UNREACHABLE', measured, 'The SSH port of a pod does not answer');
    return { ...failure, inARow: UNREACHABLE_IN_A_ROW };
  },
  remedies: {
    POD_SSH_UNREACHABLE: 'Open the leased port; check that the SSH gateway runs.',
  },
});
