/** The agent's commands: each is loaded when asked for, that which runs the agent too. */
import {
  CONFIG_COMMANDS_HELP,
  ConfigError,
  type Environment,
  exitStatusOf,
} from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { CONFIG_HELP, readConfig } from '../config.ts';
import { showConfiguration } from '../config-files.ts';

const HELP = `Usage: agent/main.ts [doctor | diag | enrol | remove-all | --help | --version | --check-config | --print-config]

The Podwright agent. Without an argument it runs; doctor looks over this host and says what to mend
(doctor --help); diag writes that and more into one archive, for whoever is to help (diag --help); enrol
has the provider vouch for this agent's key (enrol --help); remove-all removes every pod of this executor
from the Docker engine, while the agent is stopped (remove-all --help). It is configured by environment
variables:

${CONFIG_HELP}

${CONFIG_COMMANDS_HELP}
`;

/**
 * Runs what the words after `agent/main.ts` ask for; the process ends with a sentence and an exit status where that fails.
 * `environment` loses what systemd has put there.
 */
export async function runCommandLine(
  words: readonly string[],
  environment: Environment,
): Promise<void> {
  try {
    await run(words, environment);
  } catch (error) {
    process.stderr.write(`podwright-agent: ${messageOf(error)}\n`);
    // What was opened until then would keep it.
    process.exit(exitStatusOf(error));
  }
}

async function run(
  [command, ...words]: readonly string[],
  environment: Environment,
): Promise<void> {
  switch (command) {
    case undefined: {
      const config = readConfig(environment);
      await (await import('../serve.ts')).serve(config, environment);
      break;
    }
    case 'remove-all':
      await (await import('./remove-all.ts')).runRemoveAll(words, environment);
      break;
    case 'doctor':
      await (await import('./doctor.ts')).examineHost(words, environment);
      break;
    case 'diag':
      await (await import('./diag.ts')).writeDiagnosis(words, environment);
      break;
    case 'enrol':
      await (await import('./enrol.ts')).enrol(words, environment);
      break;
    case '--version':
      alone(command, words);
      // All that runs: whoever asks before a start has the compile cache filled by it.
      await import('../serve.ts');
      process.stdout.write(`${VERSION}\n`);
      break;
    case '--check-config':
    case '--print-config':
      alone(command, words);
      showConfiguration(command, environment);
      break;
    case '--help':
      process.stdout.write(HELP);
      break;
    default:
      process.stderr.write(`podwright-agent: there is no command ${command}\n\n${HELP}`);
      process.exitCode = 2;
  }
}

/** What follows a command that takes nothing was meant for another one. */
function alone(command: string, words: readonly string[]): void {
  if (words.length > 0) throw new ConfigError(`${command} takes no more words: ${words.join(' ')}`);
}
