/** Removes pods of a local marketplace: at its end, and before a fresh start. */

import { existsSync, readdirSync } from 'node:fs';
import type { Clock } from '#shared/runtime/clock.ts';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { type CommandResult, runCommand } from '#shared/runtime/run-command.ts';
import type { Central } from '../central/app.ts';
import { emptyHome, type Home } from './home.ts';

const GONE_WITHIN_MS = 30_000;
const POLL_MS = 100;

/**
 * Removes all pods. Resolves after the last pod is removed, or after a timeout; the next start removes the remaining
 * pods.
 */
export async function removePods(
  { pods }: Central,
  clock: Clock,
  progress: (line: string) => void,
): Promise<void> {
  const count = await pods.removeAll();
  if (count === 0) return;
  progress(`removing ${count} ${count === 1 ? 'pod' : 'pods'}`);
  const giveUpMs = clock.monotonicMs() + GONE_WITHIN_MS;
  for (;;) {
    const remaining = await pods.remaining();
    if (remaining.length === 0) return;
    if (clock.monotonicMs() > giveUpMs) {
      const named = remaining.map(({ id, executorId }) => `pod ${id} of node ${executorId}`);
      progress(`not removed in time: ${named.join(', ')}; the next start removes them`);
      return;
    }
    await clock.sleep(POLL_MS);
  }
}

const REMOVAL_TIMEOUT_MS = 120_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** `--fresh`: removes the containers of all agents, then the data. Throws before deleting data if a removal fails. */
export async function resetHome(
  home: Home,
  environment: Record<string, string | undefined>,
  progress: (line: string) => void,
): Promise<void> {
  for (const executorId of executorIds(home)) {
    progress(`removing the pods of executor ${executorId}`);
    const variables = { AGENT_EXECUTOR_ID: executorId, AGENT_HOME: home.agent(executorId) };
    const env = { ...pathAndDocker(environment), ...variables };
    const first = await removeAll(env);
    // Ctrl-C in a terminal also ends the child. The removal is repeated, so that no pod remains.
    const isSignalled = first.exitCode === null && first.ended === null;
    const result = isSignalled ? await removeAll(env) : first;
    if (result.exitCode !== 0)
      throw new Error(`could not remove old pods: ${result.stderr.trim()}`);
  }
  emptyHome(home);
}

function removeAll(env: Record<string, string>): Promise<CommandResult> {
  const limits = { timeoutMs: REMOVAL_TIMEOUT_MS, maxOutputBytes: MAX_OUTPUT_BYTES };
  return runCommand(process.execPath, agentArguments('remove-all'), { ...limits, env });
}

/** Executor ids of the agents, whose folders are named by them. */
function executorIds(home: Home): string[] {
  return existsSync(home.agents) ? readdirSync(home.agents) : [];
}

function pathAndDocker(environment: Record<string, string | undefined>): Record<string, string> {
  const { PATH = '/usr/bin:/bin', DOCKER_HOST } = environment;
  return DOCKER_HOST === undefined ? { PATH } : { PATH, DOCKER_HOST };
}
