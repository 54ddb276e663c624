/** `npm run doctor`: checks this machine and the marketplace that `npm start` runs on it, with the variables of its processes. */
import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
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
import { definedVariables } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { examine as examineValidator } from '../../doctor/doctor.ts';
import { agentNames, type Home, homeAt, type Variables, variablesIn } from '../home.ts';
import { LOCAL_CHECKS } from '../local-policies.ts';
import { marketFindings } from './market-report.ts';

const HELP = `Checks this machine and the marketplace that npm start runs on it, and reports what is wrong, with remedies.

  npm run doctor -- [options]

  --home DIR         the marketplace's home (default ./var)
  --no-container     start no container (otherwise the validator's probe is run once)
  --json             ${DOCTOR_JSON_HELP} instead of lines
  --help, --version

The marketplace may be running; if it is not, checks that need its processes are left out. Without a marketplace
in DIR the exit status is 2.

${DOCTOR_EXIT_HELP}
`;

/** Limits of a doctor process. The timeout exceeds the sum of the deadlines in the agent's doctor. */
const LIMITS = { timeoutMs: 180_000, maxOutputBytes: 1_000_000 };
const Findings = z.array(Finding);
const OWN_CHECK = { id: 'doctor', required: 'the agent’s doctor ends within three minutes' };

type Options = DoctorOptions & { home: string; container: boolean };

const marketplaceDoctor: Doctor<Options> = {
  program: 'podwright',
  help: HELP,
  readOptions(args) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        ...DOCTOR_OPTIONS,
        home: { type: 'string', default: './var' },
        'no-container': { type: 'boolean', default: false },
      },
    });
    return { ...values, container: !values['no-container'] };
  },
  step: 'checking this machine and the marketplace on it',
  examine,
  archive: null,
};

/** Doctors run concurrently. Only one of them starts containers, since each would report the others' containers. */
async function examine({ home: folder, container }: Options): Promise<Finding[]> {
  const home = homeAt(folder);
  const start = `npm start -- --home ${folder}`;
  if (!existsSync(home.variables('validator'))) {
    throw new UsageError(`no marketplace was started in ${home.root}: ${start}`);
  }
  const named = agentNames(home).map((name) => ({ name, variables: read(home, name) }));
  const [validator, ...agents] = await Promise.all([
    examineValidator(systemDoctorPorts({ ...read(home, 'validator') })),
    ...named.map(async ({ name, variables }, index) => {
      return [name, await examineAgent(variables, container && index === 0)] as const;
    }),
  ]);
  const simulated = named[0]?.variables['AGENT_GPU'] === 'simulated';
  return marketFindings({ simulated, agents, validator }, start);
}

function read(home: Home, name: string): Variables {
  return variablesIn(readFileSync(home.variables(name), 'utf8'));
}

/** Runs the agent's doctor as a process with the agent's variables. */
async function examineAgent(variables: Variables, container: boolean): Promise<Finding[]> {
  const { PATH = '/usr/bin:/bin', DOCKER_HOST, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, ...definedVariables({ DOCKER_HOST, NODE_COMPILE_CACHE }), ...variables };
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
