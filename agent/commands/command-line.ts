/**
 * The agent's command line. The code of a command is imported when it runs, so that each process loads only the code
 * that it needs.
 */
import { systemClock } from '#shared/runtime/clock.ts';
import {
  CONFIG_COMMANDS_HELP,
  ConfigError,
  type Environment,
  exitStatusOf,
} from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { CONFIG_HELP, readConfig } from '../config.ts';
import { readWholeConfig, showConfiguration } from '../config-files.ts';

const HELP = `Usage: npm run agent -- [host | doctor | diag | enrol | clock | remove-all | --help | --version | --check-config | --print-config]

The Podwright agent. Without an argument, the agent starts. host starts the agent with its SSH gateway (host --help); doctor checks this host and reports what to correct
(doctor --help); diag writes the report and more to an archive for support (diag --help); enrol has the
provider sign this agent's key (enrol --help); remove-all removes every pod of this executor from the
Docker engine while the agent is stopped (remove-all --help); clock shows whether the agent trusts the host's clock, and
clock confirm makes the running agent trust it within seconds. Environment variables configure the agent:

${CONFIG_HELP}

${CONFIG_COMMANDS_HELP}
`;

/**
 * Runs the command in `args`. If it fails, prints one line and exits the process with the error's status.
 * Removes systemd's own variables from `environment`.
 */
export async function runCommandLine(
  args: readonly string[],
  environment: Environment,
): Promise<void> {
  try {
    await run(args, environment);
  } catch (error) {
    process.stderr.write(`podwright-agent: ${messageOf(error)}\n`);
    // Open handles would otherwise keep the process alive.
    process.exit(exitStatusOf(error));
  }
}

async function run([command, ...args]: readonly string[], environment: Environment): Promise<void> {
  switch (command) {
    case undefined: {
      const config = readWholeConfig(environment);
      await (await import('../serve.ts')).serve(config, environment);
      break;
    }
    case 'host':
      await (await import('./host.ts')).runHost(args, environment);
      break;
    case 'remove-all':
      await (await import('./remove-all.ts')).runRemoveAll(args, environment);
      break;
    case 'doctor':
    case 'diag':
      await runDoctorCommand(command, args, environment);
      break;
    case 'clock':
      await showClock(args, environment);
      break;
    case 'enrol':
      await enrol(args, environment);
      break;
    case '--version':
      requireNoArguments(command, args);
      // Loads everything that the agent loads: a call before the first start fills the compile cache.
      await import('../serve.ts');
      process.stdout.write(`${VERSION}\n`);
      break;
    case '--check-config':
    case '--print-config':
      requireNoArguments(command, args);
      showConfiguration(command, environment);
      break;
    case '--help':
      process.stdout.write(HELP);
      break;
    default:
      process.stderr.write(`podwright-agent: unknown command ${command}\n\n${HELP}`);
      process.exitCode = 2;
  }
}

async function runDoctorCommand(
  command: 'doctor' | 'diag',
  args: readonly string[],
  environment: Environment,
): Promise<never> {
  const { agentDoctor } = await import('../doctor/doctor.ts');
  const { doctorTerminal, runDiag, runDoctor, systemDoctorPorts } = await import(
    '#shared/check/doctor.ts'
  );
  const doctor = agentDoctor(systemDoctorPorts(environment));
  const terminal = doctorTerminal(environment);
  const status =
    command === 'doctor'
      ? await runDoctor(doctor, args, terminal)
      : await runDiag('agent', doctor, args, terminal);
  // Unanswered requests would otherwise keep the process alive.
  process.exit(status);
}

async function enrol(args: readonly string[], environment: Environment): Promise<void> {
  const { EnrolError, runEnrol } = await import('../identity/enrol-command.ts');
  const host = () => {
    const { AGENT_HOME: home, AGENT_EXECUTOR_ID: executorId } = readConfig(environment);
    return { home, executorId };
  };
  try {
    process.stdout.write(runEnrol(args, { clock: systemClock, random: systemRandom, host }));
  } catch (error) {
    if (!(error instanceof EnrolError)) throw error;
    process.stderr.write(`podwright-agent: ${error.message}\n`);
    process.exitCode = 2;
  }
}

async function showClock(args: readonly string[], environment: Environment): Promise<void> {
  const { runClockCommand } = await import('#shared/runtime/clock-file.ts');
  const { AGENT_HOME: home } = readConfig(environment);
  process.stdout.write(runClockCommand(args, home, systemRandom));
}

function requireNoArguments(command: string, args: readonly string[]): void {
  if (args.length > 0) throw new ConfigError(`${command} takes no arguments: ${args.join(' ')}`);
}
