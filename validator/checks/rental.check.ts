/** A renter gets what is offered, from launch to removal, and reaches a pod for as long as it runs (validator reference 5). */
import { type Facts, failed, type Judge, type Outcome, passed, unknown } from './check.ts';
import { SAY_AGAIN } from './check-row.ts';
import type { RentalFacts, RentalStep } from './measured.ts';

/** A way that is down for a moment is no host that cannot be reached. */
const IN_A_ROW = 2;

/** As with the pods that a host has and nobody rents: what has just begun or ended is over by then. */
const SKIPPED_IN_A_ROW = 3;

const STEPS: Record<RentalStep, [message: string, remedy: string]> = {
  launch: [
    'The agent did not take a pod',
    'Start "npm run agent -- doctor", and look at the log of the agent.',
  ],
  ready: [
    'A pod did not come to run with a working login',
    'Look at the log of the agent; see that the SSH gateway runs (podwright-ssh-gateway).',
  ],
  login: [
    'A login to a pod did not work from outside',
    'Forward the range of pod ports (AGENT_PORT_RANGE) to the host, each to the same number.',
  ],
  command: [
    'A command in a pod gave no or a wrong answer',
    'Look at the logs of SSH gateway and Docker.',
  ],
  inside: [
    'A pod has less inside than was offered',
    'Correct the record in the portal; reinstall the NVIDIA container toolkit if cards are missing.',
  ],
  remove: [
    'A pod could not be removed',
    'Look at the log of the agent; restart Docker if it hangs.',
  ],
};

export const judgeRentalProbe: Judge = (facts) => {
  const { rental } = facts.measured;
  if (rental === null) return unknown('not run');
  if (rental.status === 'not_run') return judgeSkipped(rental, facts);
  if (rental.step === null) return passed(`${rental.ms} ms`);
  const [message, remedy] = STEPS[rental.step];
  const measured = `${rental.step}: ${rental.detail}`;
  return { ...failed('RENTAL_PROBE_FAILED', measured, message), remedy };
};

/** By a pod that is neither rented nor ours a host keeps itself from being tried, and by taking none of ours. */
function judgeSkipped({ detail, pods, refused, repeated }: RentalFacts, facts: Facts): Outcome {
  const { executor, measured } = facts;
  const { pod_ids: rented } = executor;
  if (refused) {
    const message = 'The agent keeps the host from being tried';
    const failure = failed('RENTAL_PROBE_SKIPPED', detail, message);
    return { ...failure, inARow: SKIPPED_IN_A_ROW, isRepeated: repeated, remedy: SAY_AGAIN };
  }
  if (rented === null) return unknown(`not run: ${detail}`);
  const known = new Set([...rented, ...measured.own_pods]);
  const strange = pods.filter((id) => !known.has(id));
  if (strange.length === 0) return unknown(`not run: ${detail}`);
  const message = 'A pod that nobody rents keeps the host from being tried';
  const failure = failed('RENTAL_PROBE_SKIPPED', strange.join(', '), message);
  return { ...failure, inARow: SKIPPED_IN_A_ROW, isRepeated: repeated };
}

export const judgeSshReach: Judge = ({ measured: { ssh } }) => {
  if (ssh === null || ssh.length === 0) return unknown('no pod to be reached');
  const lost = ssh.filter(({ problem }) => problem !== null);
  if (lost.length === 0) return passed(`${ssh.length} answer`);
  const measured = lost.map(({ pod, problem }) => `${pod}: ${problem}`).join('; ');
  const failure = failed('POD_SSH_UNREACHABLE', measured, 'The SSH port of a pod is not answered');
  return { ...failure, inARow: IN_A_ROW };
};
