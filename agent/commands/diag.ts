/** `npm run agent -- diag`. */

import { runDiag } from '#shared/check/diagnosis/diag-command.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import type { Environment } from '#shared/runtime/config.ts';
import { commandProgress } from '#shared/runtime/progress.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { diagnoseAgent } from '../doctor/diagnosis/agent-diagnosis.ts';

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
