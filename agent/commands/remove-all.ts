/** Implements `npm run agent -- remove-all`: removes all pods of this executor from the engine. */

import { systemClock } from '#shared/runtime/clock.ts';
import type { Environment } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createProgress } from '#shared/runtime/progress.ts';
import { firewallOf, secretFilesOf } from '../adapters-from-config.ts';
import { type AgentConfig, dockerSocketOf, readConfig } from '../config.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { openHome } from '../database/database.ts';
import { lockExecutor } from '../host/machine.ts';
import { removeAll } from '../pods/remove-all.ts';

const REMOVE_ALL_HELP = `Usage: npm run agent -- remove-all

Removes every pod of this executor from the Docker engine, with its networks, its data volumes, the images
built on this host and the local data of persistent volumes, saved or not. Use it for a host that leaves the
marketplace, or for a fresh start. Images from registries are not removed.
The command fails while the agent runs. It does not ask for confirmation. It reads the agent's variables:
AGENT_EXECUTOR_ID names the executor, AGENT_HOME the folder with the agent's state.
`;

/** Parses the arguments; rejects without removing anything if there are any. */
export async function runRemoveAll(
  args: readonly string[],
  environment: Environment,
): Promise<void> {
  if (args.length === 0) return removeEverything(readConfig(environment), environment);
  const isHelp = args.length === 1 && args[0] === '--help';
  (isHelp ? process.stdout : process.stderr).write(REMOVE_ALL_HELP);
  process.exitCode = isHelp ? 0 : 2;
}

/** Removes everything under the home's lock. Fails if the agent runs, because it would start its pods again. */
async function removeEverything(config: AgentConfig, environment: Environment): Promise<void> {
  const home = openHome(config.AGENT_HOME, {
    nowMs: systemClock.now(),
    sshPorts: () => ({}),
    openKeys: null,
  });
  await lockExecutor(config.AGENT_EXECUTOR_ID);
  const socketPath = dockerSocketOf(config, environment['DOCKER_HOST']);
  const engine = createDockerodeEngine({ socketPath, clock: systemClock });
  const progress = createProgress(systemClock, process.stderr);
  progress.step('removing the pods of this executor');
  const { containers, networks, volumes, images, firewallProblem } = await removeAll({
    engine,
    executorId: config.AGENT_EXECUTOR_ID,
    firewall: firewallOf(config),
  })
    .catch((cause: unknown) => {
      const what = `the engine at ${socketPath} failed: ${messageOf(cause)}`;
      throw new Error(`${what}; run remove-all again to remove the remaining objects`, { cause });
    })
    .finally(progress.end);
  secretFilesOf(config).retain(new Set());
  home.close();
  const objects = `${containers} containers, ${networks} networks, ${volumes} data volumes`;
  process.stdout.write(`removed ${objects} and ${images} images built on this host\n`);
  if (firewallProblem !== null) {
    process.stderr.write(`firewall rules may be left: ${firewallProblem}\n`);
  }
  // Idle connections to the engine would otherwise keep the process alive for a while.
  process.exit(0);
}
