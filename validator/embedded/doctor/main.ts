/**
 * `npm run doctor`: checks this machine and the marketplace that `npm start` runs on it, with the variables of its
 * processes.
 */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { unread } from '#shared/check/check.ts';
import {
  DOCTOR_EXIT_HELP,
  DOCTOR_JSON_HELP,
  DOCTOR_OPTIONS,
  type Doctor,
  type DoctorOptions,
  doctorTerminal,
  Finding,
  findingOf,
  runDoctor,
  systemDoctorPorts,
  UsageError,
} from '#shared/check/doctor.ts';
import { readArguments, requireNone } from '#shared/runtime/arguments.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { examine as examineCentral } from '../../central/doctor/doctor.ts';
import { examine as examineValidator } from '../../doctor/doctor.ts';
import { agentNames, type Home, homeAt, type Variables } from '../home.ts';
import { LOCAL_CHECKS } from '../local-policies.ts';
import { marketFindings } from './market-report.ts';
import { agentEnvironment, centralVariables, read } from './process-variables.ts';

const HELP = `Checks this machine and the marketplace that npm start runs on it, and reports what is wrong, with remedies.

  npm run doctor -- [options]

  --home DIR         the marketplace's home (default ./var)
  --no-container     start no container (otherwise the validator's probe is run once)
  --json             ${DOCTOR_JSON_HELP} instead of lines
  --archive FILE     write this report and more of every process (versions, configuration, logs, metrics; no secrets)
                     to FILE, a tar.gz for support, instead of printing it
  --log FILE         add the end of this log to the archive; may be repeated
  --help, --version

The marketplace may be running; if it is not, checks that need its processes are left out. Without a marketplace
in DIR the exit status is 2.

${DOCTOR_EXIT_HELP}
`;

/** Limits of a doctor process. The timeout exceeds the sum of the deadlines in the agent's doctor. */
const LIMITS = { timeoutMs: 180_000, maxOutputBytes: 1_000_000 };
const Findings = z.array(Finding);
const OWN_CHECK = { id: 'doctor', required: 'the agent’s doctor ends within three minutes' };

const OPTIONS = {
  ...DOCTOR_OPTIONS,
  home: { type: 'string', default: './var' },
  'no-container': { type: 'boolean', default: false },
} as const;
type Options = DoctorOptions & { home: string; container: boolean };

const marketplaceDoctor: Doctor<Options> = {
  program: 'podwright',
  help: HELP,
  readOptions(args) {
    const { values, problems } = readArguments(args, OPTIONS, 0);
    requireNone(problems);
    return { ...values, container: !values['no-container'] };
  },
  step: 'checking this machine and the marketplace on it',
  examine,
  async archive(logs, { home: folder }) {
    const { archiveMarketplace } = await import('./archive.ts');
    return archiveMarketplace(
      { home: startedHome(folder), environment: process.env },
      logs,
      (container) => examine({ home: folder, container }),
    );
  },
};

/** Doctors run concurrently. Only one of them starts containers, since each would report the others' containers. */
async function examine({
  home: folder,
  container,
}: Pick<Options, 'home' | 'container'>): Promise<Finding[]> {
  const home = startedHome(folder);
  const named = agentNames(home).map((name) => ({ name, variables: read(home, name) }));
  const [central, validator, ...agents] = await Promise.all([
    examineCentral(systemDoctorPorts(centralVariables(home, process.env))),
    examineValidator(systemDoctorPorts({ ...read(home, 'validator') })),
    ...named.map(async ({ name, variables }, index) => {
      return [name, await examineAgent(variables, container && index === 0)] as const;
    }),
  ]);
  const simulated = named[0]?.variables['AGENT_GPU'] === 'simulated';
  return marketFindings({ simulated, agents, central, validator }, startCommand(folder));
}

const startCommand = (folder: string) => `npm start -- --home ${folder}`;

/** Throws UsageError if no marketplace was started in the folder. */
function startedHome(folder: string): Home {
  const home = homeAt(folder);
  if (existsSync(home.variables('validator'))) return home;
  throw new UsageError(`no marketplace was started in ${home.root}: ${startCommand(folder)}`);
}

/** Runs the agent's doctor as a process with the agent's variables. */
async function examineAgent(variables: Variables, container: boolean): Promise<Finding[]> {
  const env = agentEnvironment(variables, process.env);
  const minFree = String(LOCAL_CHECKS.min_free_disk_gib);
  const args = ['doctor', '--json', '--min-free-disk', minFree];
  if (!container) args.push('--no-container');
  const { stdout, stderr, ended } = await runCommand(process.execPath, agentArguments(...args), {
    ...LIMITS,
    env,
  });
  if (ended === 'timeout') {
    const problem = 'the agent’s doctor did not end in time';
    return [findingOf(OWN_CHECK, unread({ problem, timedOut: true }, problem))];
  }
  if (stdout === '') throw new Error(`the agent's doctor printed nothing: ${stderr.trim()}`);
  return Findings.parse(JSON.parse(stdout));
}

try {
  const terminal = doctorTerminal(process.env);
  const args = process.argv.slice(2);
  if (args.join(' ') === '--version') terminal.out(`${VERSION}\n`);
  else process.exitCode = await runDoctor(marketplaceDoctor, args, terminal);
} catch (error) {
  process.stderr.write(`podwright: ${messageOf(error).trimEnd()}\n`);
  process.exitCode = 1;
}
// Requests that were never answered would keep the process alive.
process.exit();
