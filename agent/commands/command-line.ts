/** The agent's commands: each is loaded when asked for, that which runs the agent too. */
import type { Environment } from '#shared/config.ts';
import { CONFIG_COMMANDS_HELP } from '#shared/config-command.ts';
import { VERSION } from '#shared/version.ts';
import { CONFIG_HELP } from '../config.ts';
import { configOrExit, showConfiguration } from '../config-or-exit.ts';

const HELP = `Usage: agent/main.ts [doctor | diag | enrol | remove-all | --help | --version | --check-config | --print-config]

The Podwright agent. Without an argument it runs; doctor looks over this host and says what to mend
(doctor --help); diag writes that and more into one archive, for whoever is to help (diag --help); enrol
has the provider vouch for this agent's key (enrol --help); remove-all removes every pod of this executor
from the Docker engine, while the agent is stopped (remove-all --help). It is configured by environment
variables:

${CONFIG_HELP}

${CONFIG_COMMANDS_HELP}
`;

/** Runs what the words after `agent/main.ts` ask for. `environment` loses what systemd has put there. */
export async function runCommandLine(
  [command, ...words]: readonly string[],
  environment: Environment,
): Promise<void> {
  switch (command) {
    case undefined: {
      const config = configOrExit(environment);
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
      // All that runs: whoever asks before a start has the compile cache filled by it.
      await import('../serve.ts');
      process.stdout.write(`${VERSION}\n`);
      break;
    case '--check-config':
    case '--print-config':
      showConfiguration(command, environment);
      break;
    case '--help':
      process.stdout.write(HELP);
      break;
    default:
      process.stderr.write(HELP);
      process.exitCode = 2;
  }
}
