/** `npm run agent -- doctor`: options in, report and exit status out. */

import { jsonReport, textReport } from '#shared/check/report.ts';
import type { Progress } from '#shared/runtime/progress.ts';
import type { DoctorPorts } from './examine.ts';
import { DOCTOR_HELP, readOptions } from './options.ts';

export type DoctorTerminal = {
  out(text: string): void;
  error(text: string): void;
  progress: Progress;
  /** Somebody looks at it who sees colours. */
  colours: boolean;
};

const WRONG_USAGE = 2;

/** The exit status: 0 when nothing fails, 1 when something does, 2 for wrong usage. */
export async function runDoctor(
  args: readonly string[],
  ports: DoctorPorts,
  terminal: DoctorTerminal,
): Promise<number> {
  const options = readOptions(args);
  if (typeof options === 'string') {
    terminal.error(`podwright-agent: ${options}\n\n${DOCTOR_HELP}`);
    return WRONG_USAGE;
  }
  if (options.help) {
    terminal.out(DOCTOR_HELP);
    return 0;
  }
  const { examine } = await import('./examine.ts');
  terminal.progress.step('looking over this host');
  const findings = await examine(ports, options);
  terminal.progress.end();
  terminal.out(options.json ? jsonReport(findings) : textReport(findings, terminal.colours));
  return findings.some(({ status }) => status === 'fail') ? 1 : 0;
}
