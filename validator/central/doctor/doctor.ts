/** `npm run central -- doctor`. */
import type { CheckDefinition } from '#shared/check/check.ts';
import { CLOCK_CHECKS } from '#shared/check/clock.check.ts';
import { configurationChecks, configurationFacts } from '#shared/check/configuration.check.ts';
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
import { inspectConfig } from '#shared/runtime/config.ts';
import { CENTRAL_CONFIG } from '../config.ts';
import { CENTRAL_DISK_CHECKS, CENTRAL_SERVICE_CHECKS } from './central.check.ts';
import { readFacts } from './central-facts.ts';

const CONFIGURATION_CHECKS = configurationChecks(CENTRAL_CONFIG.prefix);

/** Every check of the central API's doctor, in the order of the report. */
export const CENTRAL_DOCTOR_CHECKS: readonly CheckDefinition[] = [
  ...CONFIGURATION_CHECKS,
  ...CENTRAL_SERVICE_CHECKS,
  ...CLOCK_CHECKS,
  ...CENTRAL_DISK_CHECKS,
];

const HELP = `Usage: npm run central -- doctor [options]

Checks what this central API depends on and reports what is wrong, with remedies: configuration, database, key, secret,
gateway, its own listener, clock, disk. Run it with the variables and as the user of the central API, which may be
running.

${DOCTOR_EXIT_HELP}

  --json           ${DOCTOR_JSON_HELP} instead of lines
  --archive FILE   write this report and more (versions, configuration, journal, metrics, numbers of rows; no secrets)
                   to FILE, a tar.gz for support, instead of printing it
  --log FILE       add the end of this log to the archive; may be repeated
  --help           print this

Statuses: ok, warn (works now, will cause trouble), fail (the API does not serve, or reaches no node), unknown (cannot
be checked from here).
`;

export function centralDoctor(ports: DoctorPorts): Doctor {
  return {
    program: 'podwright central API',
    help: HELP,
    readOptions(args) {
      const { values, problems } = readArguments(args, DOCTOR_OPTIONS, 0);
      requireNone(problems);
      return values;
    },
    step: 'checking what this central API depends on',
    examine: () => examine(ports),
    async archive(logs) {
      const { archiveCentral } = await import('./archive.ts');
      return archiveCentral(ports, logs, () => examine(ports));
    },
  };
}

/** Runs all checks. With an invalid configuration, reports only that. Changes nothing. */
export async function examine(ports: DoctorPorts): Promise<Finding[]> {
  const inspected = inspectConfig(CENTRAL_CONFIG, ports.environment);
  const configuration = findingsOf(CONFIGURATION_CHECKS, configurationFacts(inspected));
  if (inspected.config === null) return configuration;
  const found = await readFacts(ports, inspected.config);
  return [
    ...configuration,
    ...findingsOf(CENTRAL_SERVICE_CHECKS, found),
    ...findingsOf(CLOCK_CHECKS, found.time),
    ...findingsOf(CENTRAL_DISK_CHECKS, found.disk),
  ];
}
