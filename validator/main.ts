/** `npm run validator`: one validator, talking to a central API elsewhere. */
import { join } from 'node:path';
import { systemClock } from '#shared/clock.ts';
import { ConfigError } from '#shared/config.ts';
import { messageOf } from '#shared/errors.ts';
import { createLog } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { VERSION } from '#shared/version.ts';
import { createValidator } from './app.ts';
import { readValidatorConfig } from './config.ts';
import { keyringSigner, readOrCreateSeedFile } from './keys/seed-file.ts';

const HELP = `podwright validator ${VERSION}

Checks the executors that a central API lists, reports verdicts, and relays that API's commands to agents.

  npm run validator                   run (configured by VALIDATOR_* variables, see README)
  npm run validator -- --check-config check the configuration and stop
  npm run validator -- --version
`;

async function run(argument: string | undefined): Promise<void> {
  if (argument === '--help') return print(HELP);
  if (argument === '--version') return print(`${VERSION}\n`);
  const config = readValidatorConfig(process.env);
  if (argument === '--check-config') return print('configuration is valid\n');
  if (argument !== undefined) throw new ConfigError(`unknown argument ${argument}; see --help`);

  const log = createLog({ name: 'validator', level: config.VALIDATOR_LOG_LEVEL });
  const seedFile = config.VALIDATOR_SEED_FILE ?? join(config.VALIDATOR_HOME, 'hotkey.seed');
  const validator = createValidator({
    clock: systemClock,
    random: systemRandom,
    log,
    signer: await keyringSigner(readOrCreateSeedFile(seedFile, systemRandom)),
    centralUrl: config.VALIDATOR_CENTRAL_URL.replace(/\/+$/, ''),
    centralHotkey: config.VALIDATOR_CENTRAL_HOTKEY,
    policy: { acceptSimulated: config.VALIDATOR_ACCEPT_SIMULATED },
    checkIntervalMs: config.VALIDATOR_CHECK_INTERVAL_S * 1000,
    listIntervalMs: config.VALIDATOR_LIST_INTERVAL_S * 1000,
  });
  await validator.server.listen({ host: config.VALIDATOR_HOST, port: config.VALIDATOR_PORT });
  validator.start();
  log.info({ host: config.VALIDATOR_HOST, port: config.VALIDATOR_PORT }, 'validator ready');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void validator.close());
  }
}

function print(text: string): void {
  process.stdout.write(text);
}

try {
  await run(process.argv[2]);
} catch (error) {
  process.stderr.write(`podwright validator: ${messageOf(error)}\n`);
  process.exitCode = error instanceof ConfigError ? 6 : 1;
}
