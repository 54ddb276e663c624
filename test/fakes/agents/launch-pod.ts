/** Launches and removes pods through the interface of an agent process. */
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { AgentProcess } from './agent-process.ts';

const POLL_MS = 50;

export type LaunchOptions = {
  /** Default: the pod runs. */
  isReady?(view: PodView): boolean;
  pollMs?: number;
};

/** Launches a pod with a new id and waits until it is ready. Rejects if the launch fails. */
export async function launchPod(
  { client }: AgentProcess,
  spec: PodSpecInput,
  { isReady = ({ phase }) => phase === 'running', pollMs = POLL_MS }: LaunchOptions = {},
): Promise<PodView> {
  const id = systemRandom.uuid();
  let view = await client.putPod(id, spec);
  while (!isReady(view)) {
    if (view.phase === 'failed') throw new Error(`launch failed: ${view.message}`);
    await systemClock.sleep(pollMs);
    view = await client.getPod(id);
  }
  return view;
}

/**
 * Removes pods and waits until they are gone. Polls with one list for all pods, because the agent verifies the signature
 * of each request.
 */
export async function removePods(
  { client }: AgentProcess,
  ids: readonly string[],
  pollMs = POLL_MS,
): Promise<void> {
  for (const id of ids) await client.deletePod(id);
  const isLeft = ({ id }: PodView) => ids.includes(id);
  while ((await client.listPods()).some(isLeft)) await systemClock.sleep(pollMs);
}
