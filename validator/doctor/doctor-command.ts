/** `npm run validator -- doctor`: options in, report and exit status out. */
import type { Finding } from '#shared/check/finding.ts';
import { jsonReport, textReport } from '#shared/check/report.ts';
import type { Progress } from '#shared/runtime/progress.ts';
import { type DoctorPorts, readConfigurationFacts, readFacts } from './facts.ts';
import { configurationFinding, validatorFindings } from './findings.ts';
import { DOCTOR_HELP, readOptions } from './options.ts';

export type DoctorTerminal = {
  out(text: string): void;
  error(text: string): void;
  progress: Progress;
  /** Somebody looks at it who sees colours. */
  colours: boolean;
};

const WRONG_USAGE = 2;

/** Of a configuration that is refused nothing else can be looked at. Changes nothing. */
export async function examine(ports: DoctorPorts): Promise<Finding[]> {
  const { config, facts } = readConfigurationFacts(ports.environment);
  const first = configurationFinding(facts);
  if (config === null) return [first];
  return [first, ...validatorFindings(await readFacts(ports, config))];
}

/** The exit status: 0 when nothing fails, 1 when something does, 2 for wrong usage. */
export async function runDoctor(
  args: readonly string[],
  ports: DoctorPorts,
  { out, error, colours, progress }: DoctorTerminal,
): Promise<number> {
  const options = readOptions(args);
  if (typeof options === 'string') {
    error(`podwright validator: ${options}\n\n${DOCTOR_HELP}`);
    return WRONG_USAGE;
  }
  if (options.help) {
    out(DOCTOR_HELP);
    return 0;
  }
  progress.step('looking over what this validator works with');
  const findings = await examine(ports);
  progress.end();
  out(options.json ? jsonReport(findings) : textReport(findings, colours));
  return findings.some(({ status }) => status === 'fail') ? 1 : 0;
}
