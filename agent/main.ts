/** The agent's process: each of its commands is loaded when asked for, that which runs the agent too. */
import { CONFIG_COMMANDS_HELP } from '#shared/config-command.ts';
import { VERSION } from '#shared/version.ts';
import { configOrExit, showConfiguration } from './commands/configuration.ts';
import { CONFIG_HELP } from './config.ts';

const HELP = `Usage: agent/main.ts [doctor | diag | enrol | remove-all | --help | --version | --check-config | --print-config]

The Podwright agent. Without an argument it runs; doctor looks over this host and says what to mend
(doctor --help); diag writes that and more into one archive, for whoever is to help (diag --help); enrol
has the provider vouch for this agent's key (enrol --help); remove-all removes every pod of this executor
from the Docker engine, while the agent is stopped (remove-all --help). It is configured by environment
variables:

${CONFIG_HELP}

${CONFIG_COMMANDS_HELP}
`;

if (process.features.typescript === false) throw new Error('run this with Node 26: npm run agent');

const [command, ...words] = process.argv.slice(2);
switch (command) {
  case undefined: {
    const config = configOrExit(process.env);
    await (await import('./serve.ts')).serve(config, process.env);
    break;
  }
  case 'remove-all':
    await (await import('./commands/remove-all.ts')).runRemoveAll(words, process.env);
    break;
  case 'doctor':
    await (await import('./commands/doctor.ts')).examineHost(words, process.env);
    break;
  case 'diag':
    await (await import('./commands/diag.ts')).writeDiagnosis(words, process.env);
    break;
  case 'enrol':
    await (await import('./commands/enrol.ts')).enrol(words, process.env);
    break;
  case '--version':
    // All that runs: whoever asks before a start has the compile cache filled by it.
    await import('./serve.ts');
    process.stdout.write(`${VERSION}\n`);
    break;
  case '--check-config':
  case '--print-config':
    showConfiguration(command, process.env);
    break;
  case '--help':
    process.stdout.write(HELP);
    break;
  default:
    process.stderr.write(HELP);
    process.exitCode = 2;
}
