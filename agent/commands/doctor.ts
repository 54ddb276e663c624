/** `npm run agent -- doctor`. */
import { systemClock } from '#shared/runtime/clock.ts';
import type { Environment } from '#shared/runtime/config.ts';
import { commandProgress } from '#shared/runtime/progress.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { runDoctor } from '../doctor/run-doctor.ts';

export async function examineHost(
  args: readonly string[],
  environment: Environment,
): Promise<never> {
  const { stdout, stderr } = process;
  const ports = { clock: systemClock, random: systemRandom, runCommand, environment };
  const status = await runDoctor(args, ports, {
    out: (text) => stdout.write(text),
    error: (text) => stderr.write(text),
    progress: commandProgress(systemClock, stderr),
    colours: stdout.isTTY === true && !environment['NO_COLOR'],
  });
  // A question that nobody answers would keep the process.
  process.exit(status);
}
