/** Examines a running pod with the consent of its renter: what its agent states, its SSH port, and its resources inside. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { ReportFinding, ReportToExamine } from '#shared/api/central/pod-reports.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { INSPECT_SCRIPT, memorySeen, shortfallIn } from '../rental-probe/probe-spec.ts';
import type { ReadBanner } from '../rental-probe/ssh-session.ts';
import { admittedShortfall, expectedOf } from './examination.plan.ts';
import type { RunInPod } from './pod-terminal.ts';

const BANNER_MS = 10_000;

export type LookDeps = {
  clock: Clock;
  clientOf(executor: ExecutorToCheck): Pick<AgentClient, 'inventory' | 'getPod'>;
  runInPod: RunInPod;
  readBanner: ReadBanner;
};

/** Rejects if the pod could not be examined. */
export async function lookInside(
  deps: LookDeps,
  executor: ExecutorToCheck,
  { pod_id: podId, offer, reason }: ReportToExamine,
): Promise<ReportFinding> {
  const { clock, clientOf, runInPod } = deps;
  const client = clientOf(executor);
  const view = await client.getPod(podId);
  if (view.phase !== 'running') throw new Error(`the pod is ${view.phase}`);
  const stated = admittedShortfall(offer, view, await client.inventory());
  if (stated !== null) return { means: 'agent', at: clock.now(), step: null, shortfall: stated };
  const unreachable = reason === 'ssh_unusable' ? await sshProblem(deps, executor, view.ssh) : null;
  if (unreachable !== null) {
    return { means: 'pod', at: clock.now(), step: null, shortfall: unreachable };
  }
  const output = await runInPod(executor, podId, INSPECT_SCRIPT);
  if (memorySeen(output) === null) throw new Error('the pod cannot run the commands');
  const shortfall = shortfallIn(expectedOf(offer, view), output);
  return { means: 'pod', at: clock.now(), step: null, shortfall };
}

async function sshProblem(
  { clock, readBanner }: LookDeps,
  { executor_ip_address: host }: ExecutorToCheck,
  ssh: { port: number } | null,
): Promise<string | null> {
  if (ssh === null) throw new Error('the pod has no SSH port of the gateway');
  const problem = await readBanner({ host, port: ssh.port }, clock.deadline(BANNER_MS));
  return problem === null ? null : `SSH: ${problem}`;
}
