/** `npm run agent -- enrol`. */
import { systemClock } from '#shared/runtime/clock.ts';
import type { Environment } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { readConfig } from '../config.ts';
import { EnrolError, runEnrol } from '../identity/enrol-command.ts';

export async function enrol(args: readonly string[], environment: Environment): Promise<void> {
  const host = () => {
    const { AGENT_HOME: home, AGENT_EXECUTOR_ID: executorId } = readConfig(environment);
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
