/** `npm run agent -- diag`. */
import { systemClock } from '#shared/clock.ts';
import type { Environment } from '#shared/config.ts';
import { runDiag } from '#shared/diagnosis/diag-command.ts';
import { commandProgress } from '#shared/progress.ts';
import { systemRandom } from '#shared/random.ts';
import { runCommand } from '#shared/run-command.ts';
import { diagnoseAgent } from '../diagnosis/agent-diagnosis.ts';

export async function writeDiagnosis(
  args: readonly string[],
  environment: Environment,
): Promise<never> {
  const ports = { clock: systemClock, random: systemRandom, runCommand, environment };
  const status = await runDiag({
    ...{ ...ports, program: 'agent', args },
    print: (text) => void process.stdout.write(text),
    progress: commandProgress(systemClock, process.stderr),
    complain: (text) => void process.stderr.write(`podwright-agent: ${text}`),
    collect: (logs) => diagnoseAgent(ports, logs),
  });
  // A question that nobody answers would keep the process.
  process.exit(status);
}
