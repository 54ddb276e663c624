/** `--fresh`: forgets a local marketplace, its containers first, so that none is left without an owner. */
import { existsSync, readdirSync } from 'node:fs';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { emptyHome, type Home } from './home.ts';

const REMOVAL_TIMEOUT_MS = 120_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** Throws, having forgotten nothing, when an agent cannot remove its objects. */
export async function startFresh(
  home: Home,
  environment: Record<string, string | undefined>,
  progress: (line: string) => void,
): Promise<void> {
  for (const executorId of executorIds(home)) {
    progress(`removing the pods of executor ${executorId}`);
    const result = await runCommand(process.execPath, agentArguments('remove-all'), {
      timeoutMs: REMOVAL_TIMEOUT_MS,
      maxOutputBytes: MAX_OUTPUT_BYTES,
      env: {
        ...pathAndDocker(environment),
        AGENT_EXECUTOR_ID: executorId,
        AGENT_HOME: home.agent(executorId),
      },
    });
    if (result.exitCode !== 0)
      throw new Error(`could not remove old pods: ${result.stderr.trim()}`);
  }
  emptyHome(home);
}

/** Each agent's folder is named after its executor. */
function executorIds(home: Home): string[] {
  return existsSync(home.agents) ? readdirSync(home.agents) : [];
}

function pathAndDocker(environment: Record<string, string | undefined>): Record<string, string> {
  const { PATH = '/usr/bin:/bin', DOCKER_HOST } = environment;
  return DOCKER_HOST === undefined ? { PATH } : { PATH, DOCKER_HOST };
}
