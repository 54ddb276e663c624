/** `npm run agent -- enrol`. */
import { systemClock } from '#shared/clock.ts';
import type { Environment } from '#shared/config.ts';
import { systemRandom } from '#shared/random.ts';
import { configOrExit } from '../config-or-exit.ts';
import { EnrolError, runEnrol } from '../identity/enrol-command.ts';

export async function enrol(args: readonly string[], environment: Environment): Promise<void> {
  const host = () => {
    const { AGENT_HOME: home, AGENT_EXECUTOR_ID: executorId } = configOrExit(environment);
    return { home, executorId };
  };
  try {
    process.stdout.write(runEnrol(args, { clock: systemClock, random: systemRandom, host }));
  } catch (error) {
    if (!(error instanceof EnrolError)) throw error;
    process.stderr.write(`podwright-agent: ${error.message}\n`);
    process.exitCode = 2;
  }
}
