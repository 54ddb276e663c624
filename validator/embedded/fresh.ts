/** `--fresh`: forgets a local marketplace, its containers first, so that none is left without an owner. */
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runCommand } from '#shared/run-command.ts';
import { emptyHome, type Home } from './home.ts';

const AGENT_MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url));
const REMOVAL_TIMEOUT_MS = 120_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** Throws, having forgotten nothing, when an agent cannot remove its objects. */
export async function startFresh(
  home: Home,
  environment: Record<string, string | undefined>,
  progress: (line: string) => void,
): Promise<void> {
  for (const agentHome of agentHomes(home)) {
    progress(`removing what is left of ${agentHome}`);
    const result = await runCommand(process.execPath, [AGENT_MAIN, 'remove-all', agentHome], {
      timeoutMs: REMOVAL_TIMEOUT_MS,
      maxOutputBytes: MAX_OUTPUT_BYTES,
      env: pathAndDocker(environment),
    });
    if (result.exitCode !== 0)
      throw new Error(`could not remove old pods: ${result.stderr.trim()}`);
  }
  emptyHome(home);
}

function agentHomes(home: Home): string[] {
  const folder = home.agents;
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((name) => `${folder}/${name}`);
}

function pathAndDocker(environment: Record<string, string | undefined>): Record<string, string> {
  const { PATH = '/usr/bin:/bin', DOCKER_HOST } = environment;
  return DOCKER_HOST === undefined ? { PATH } : { PATH, DOCKER_HOST };
}
