/** The command line of the validator's doctor. Pure. */
import { parseArgs } from 'node:util';
import { messageOf } from '#shared/runtime/errors.ts';

export type DoctorOptions = { json: boolean; help: boolean };

export const DOCTOR_HELP = `Usage: npm run validator -- doctor [--json]

Looks over what this validator works with and names what is wrong, with the remedy: configuration, key, ledger,
policies, the central API and whether it takes our signature, gateway, registry, clock, disk. Run it with the variables
and as the user of the validator, which may run meanwhile. Exit status: 0 nothing fails, 1 something does, 2 wrong usage.

  --json   print [{"id","status","finding","remedy"}] instead of lines
  --help   print this

Statuses: ok, warn (works now, will hurt), fail (no verdicts, weights or commands), unknown (cannot be seen from here).
`;

/** A sentence on what is wrong instead of options. */
export function readOptions(args: readonly string[]): DoctorOptions | string {
  try {
    const flag = { type: 'boolean', default: false } as const;
    return parseArgs({ args: [...args], options: { json: flag, help: flag } }).values;
  } catch (error) {
    return messageOf(error);
  }
}
