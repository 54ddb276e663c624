/** `npm run validator -- doctor`. */
import type { CheckDefinition } from '#shared/check/check.ts';
import { CLOCK_CHECKS } from '#shared/check/clock.check.ts';
import {
  DOCTOR_EXIT_HELP,
  DOCTOR_JSON_HELP,
  DOCTOR_OPTIONS,
  type Doctor,
  type DoctorPorts,
  type Finding,
  findingsOf,
} from '#shared/check/doctor.ts';
import { readArguments, requireNone } from '#shared/runtime/arguments.ts';
import {
  CONFIGURATION_CHECKS,
  VALIDATOR_DISK_CHECKS,
  VALIDATOR_SERVICE_CHECKS,
} from './validator.check.ts';
import { readConfigurationFacts, readFacts } from './validator-facts.ts';

/** Every check of the validator's doctor, in the order of the report. */
export const VALIDATOR_DOCTOR_CHECKS: readonly CheckDefinition[] = [
  ...CONFIGURATION_CHECKS,
  ...VALIDATOR_SERVICE_CHECKS,
  ...CLOCK_CHECKS,
  ...VALIDATOR_DISK_CHECKS,
];

const HELP = `Usage: npm run validator -- doctor [options]

Checks what this validator depends on and reports what is wrong, with remedies: configuration, key, evidence store,
policies, the central API and whether it accepts our signature, gateway, registry, clock, disk. Run it with the
variables and as the user of the validator, which may be running.

${DOCTOR_EXIT_HELP}

  --json           ${DOCTOR_JSON_HELP} instead of lines
  --archive FILE   write this report and more (versions, configuration, journal, metrics, a summary of the store;
                   no secrets) to FILE, a tar.gz for support, instead of printing it
  --log FILE       add the end of this log to the archive; may be repeated
  --help           print this

Statuses: ok, warn (works now, will cause trouble), fail (no verdicts, weights or commands), unknown (cannot be
checked from here).
`;

export function validatorDoctor(ports: DoctorPorts): Doctor {
  return {
    program: 'podwright validator',
    help: HELP,
    readOptions(args) {
      const { values, problems } = readArguments(args, DOCTOR_OPTIONS, 0);
      requireNone(problems);
      return values;
    },
    step: 'checking what this validator depends on',
    examine: () => examine(ports),
    async archive(logs) {
      const { archiveValidator } = await import('./archive.ts');
      return archiveValidator(ports, logs, () => examine(ports));
    },
  };
}

/** Runs all checks. With an invalid configuration, reports only that. Changes nothing. */
export async function examine(ports: DoctorPorts): Promise<Finding[]> {
  const { config, facts } = readConfigurationFacts(ports.environment);
  const configuration = findingsOf(CONFIGURATION_CHECKS, facts);
  if (config === null) return configuration;
  const found = await readFacts(ports, config);
  return [
    ...configuration,
    ...findingsOf(VALIDATOR_SERVICE_CHECKS, found),
    ...findingsOf(CLOCK_CHECKS, found.time),
    ...findingsOf(VALIDATOR_DISK_CHECKS, found.disk),
  ];
}
