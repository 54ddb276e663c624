/** Whether pods of a rented host are reached: who listens at their SSH port says so by itself, and nothing is sent. */
import type { PodView } from '#shared/api/agent/pod.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Measured } from '../checks/measured.ts';
import type { ReadBanner } from './rental-probe/ssh-session.ts';

/** A pod may take as long before its login works. */
const FIRST_MS = 90_000;
const BANNER_MS = 10_000;
const MAX_PODS = 16;

/** Null where it could not be tried. */
export async function sshReach(
  { readBanner, clock }: { readBanner: ReadBanner; clock: Clock },
  executor: ExecutorToCheck,
  pods: readonly PodView[],
): Promise<Measured['ssh']> {
  const old = pods.filter(
    ({ phase, phase_since_ms: sinceMs }) =>
      phase === 'running' && clock.now() - sinceMs >= FIRST_MS,
  );
  const signal = clock.deadline(BANNER_MS);
  const host = executor.executor_ip_address;
  const looks = old
    .flatMap(({ id, ssh }) => (ssh === null ? [] : [{ id, port: ssh.port }]))
    .slice(0, MAX_PODS)
    .map(async ({ id, port }) => ({ pod: id, problem: await readBanner({ host, port }, signal) }));
  return Promise.all(looks).catch(() => null);
}
