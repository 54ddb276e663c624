/** `npm run doctor`: looks over this machine and what `npm start` runs on it, with the variables that it was started with. */
import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { FINDING_STATUSES, type Finding } from '#shared/check/finding.ts';
import { jsonReport, textReport } from '#shared/check/report.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { definedIn } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { commandProgress } from '#shared/runtime/progress.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { examine } from '../../doctor/doctor-command.ts';
import { agentNames, type Home, homeAt, type Variables, variablesIn } from '../home.ts';
import { marketFindings } from './market.findings.ts';

const HELP = `Looks over this machine and the marketplace that npm start runs on it, and names what is wrong, with the remedy.

  npm run doctor -- [options]

  --home DIR         the marketplace's (default ./var)
  --no-container     start no container (otherwise the validator's self-test is run once)
  --json             print [{"id","status","finding","remedy"}] instead of lines
  --help

It may run meanwhile; where it does not, only what stands still is looked at. Exit status: 0 nothing fails, 1 something
does, 2 wrong usage, or DIR holds no marketplace.
`;

const WRONG_USAGE = 2;
/** The agent's doctor gives each of its questions seconds; the containers take longest. */
const LIMITS = { timeoutMs: 180_000, maxOutputBytes: 1_000_000 };
const Findings: z.ZodType<Finding[]> = z.array(
  z.object({
    id: z.string(),
    status: z.enum(FINDING_STATUSES),
    finding: z.string(),
    remedy: z.string().nullable(),
  }),
);

/** Said to whoever typed it. */
class UsageError extends Error {}

function readOptions(args: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  const home = { type: 'string', default: './var' } as const;
  try {
    const options = { home, 'no-container': flag, json: flag, help: flag };
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError(`${messageOf(error)}\n\n${HELP}`);
  }
}

async function run(args: readonly string[]): Promise<void> {
  const options = readOptions(args);
  if (options.help) return print(HELP);
  const home = homeAt(options.home);
  const start = `npm start -- --home ${options.home}`;
  if (!existsSync(home.variables('validator'))) {
    throw new UsageError(`no marketplace was started in ${home.root}: ${start}\n`);
  }
  const progress = commandProgress(systemClock, process.stderr);
  progress.step('looking over this machine and what runs on it');
  const findings = await look(home, !options['no-container'], start).finally(progress.end);
  const colours = process.stdout.isTTY === true && !process.env['NO_COLOR'];
  print(options.json ? jsonReport(findings) : textReport(findings, colours));
  process.exitCode = findings.some(({ status }) => status === 'fail') ? 1 : 0;
}

/** Side by side; one alone starts containers, for they would see each other's. */
async function look(home: Home, container: boolean, start: string): Promise<Finding[]> {
  const named = agentNames(home).map((name) => ({ name, variables: read(home, name) }));
  const environment = { ...read(home, 'validator') };
  const [validator, ...agents] = await Promise.all([
    examine({ clock: systemClock, random: systemRandom, runCommand, environment }),
    ...named.map(async ({ name, variables }, index) => {
      return [name, await ofAgent(variables, container && index === 0)] as const;
    }),
  ]);
  const simulated = named[0]?.variables['AGENT_GPU'] === 'simulated';
  return marketFindings({ simulated, agents, validator }, start);
}

function read(home: Home, name: string): Variables {
  return variablesIn(readFileSync(home.variables(name), 'utf8'));
}

async function ofAgent(variables: Variables, container: boolean): Promise<Finding[]> {
  const { PATH = '/usr/bin:/bin', DOCKER_HOST, NODE_COMPILE_CACHE } = process.env;
  const own = { PATH, ...definedIn({ DOCKER_HOST, NODE_COMPILE_CACHE }), ...variables };
  const words = ['doctor', '--json', ...(container ? [] : ['--no-container'])];
  const said = await runCommand(process.execPath, agentArguments(...words), {
    ...LIMITS,
    env: own,
  });
  if (said.stdout === '') throw new Error(`the agent's doctor said nothing: ${said.stderr.trim()}`);
  return Findings.parse(JSON.parse(said.stdout));
}

function print(text: string): void {
  process.stdout.write(text);
}

try {
  await run(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`podwright: ${messageOf(error).trimEnd()}\n`);
  process.exitCode = error instanceof UsageError ? WRONG_USAGE : 1;
}
// A question that nobody answers would keep the process.
process.exit();
