/** The doctor's command line. Pure. */
import { parseArgs } from 'node:util';

export type DoctorOptions = {
  json: boolean;
  help: boolean;
  /** Start containers for the self-test. */
  container: boolean;
  /** How others reach this host; null: the address of the default route. */
  address: string | null;
  /** Whose clock to compare with; null: nobody's. */
  timeFrom: string | null;
};

export const DOCTOR_HELP = `Usage: npm run agent -- doctor [options]

Looks over this host and names what would keep it from being rented, with the remedy. Run it with the
variables and as the user of the agent, which may run meanwhile. Exit status: 0 nothing fails, 1 something
does, 2 wrong usage.

  --json            print [{"id","status","finding","remedy"}] instead of lines
  --no-container    start no container (otherwise the validator's self-test is run once)
  --address HOST    name or address by which others reach this host
  --time-from URL   compare the clock with the answer of this address, the central API for one
  --help            print this

Statuses: ok, warn (works now, will hurt), fail (pods will not run or not be reached), unknown (cannot be
seen from here).
`;

const HOST = /^[A-Za-z0-9.:-]{1,253}$/;

/** A sentence on what is wrong instead of options. */
export function readOptions(args: readonly string[]): DoctorOptions | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        'no-container': { type: 'boolean', default: false },
        address: { type: 'string' },
        'time-from': { type: 'string' },
      },
    });
    const { 'time-from': timeFrom = null } = values;
    // As a URL has an IPv6 address, too.
    const address = values.address?.replace(/^\[(.*:.*)\]$/, '$1') ?? null;
    if (address !== null && !HOST.test(address)) return `--address ${address}: not a host name`;
    if (timeFrom !== null && !isHttp(timeFrom))
      return `--time-from ${timeFrom}: not an http(s) URL`;
    return { ...values, container: !values['no-container'], address, timeFrom };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function isHttp(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
