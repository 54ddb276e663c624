/** The check of a process's variables. */
import type { ConfigReport } from '../runtime/config.ts';
import { fail, ok, warn } from './check.ts';
import type { DoctorCheck } from './doctor.ts';

export type ConfigurationFacts = { problems: readonly string[]; unknown: readonly string[] };

export function configurationFacts(
  report: Pick<ConfigReport<unknown>, 'problems' | 'warnings'>,
): ConfigurationFacts {
  const messages = (list: typeof report.problems) => list.map(({ message }) => message);
  return { problems: messages(report.problems), unknown: messages(report.warnings) };
}

/** `prefix`: beginning of the names of the variables. */
export function configurationChecks(prefix: string): readonly DoctorCheck<ConfigurationFacts>[] {
  return [
    {
      id: 'configuration',
      detects: 'variables that are invalid or misspelt',
      required: `every ${prefix}* variable is known and valid`,
      judge({ problems, unknown }) {
        const remedy = 'correct them; the README lists all variables';
        if (problems.length > 0) return fail([...problems, ...unknown].join('; '), remedy);
        if (unknown.length > 0) return warn(unknown.join('; '), remedy);
        return ok(`every ${prefix}* variable is valid`);
      },
    },
  ];
}
