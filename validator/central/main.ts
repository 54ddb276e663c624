/**
 * `npm run central`: a central API in a process without a validator. Several processes may share one PostgreSQL
 * database.
 */
import { userInfo } from 'node:os';
import {
  acceptedConfig,
  CONFIG_COMMANDS_HELP,
  ConfigError,
  errorMessages,
  exitStatusOf,
  inspectConfig,
  runConfigCommand,
} from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { stopOnSignal } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { isTracingConfigured } from '#shared/telemetry/tracing.ts';
import { CENTRAL_CONFIG, centralSeedFileIn, readCentralConfig } from './config.ts';

const HELP = `podwright central API ${VERSION}

Serves renters and providers, and commands agents through the gateway of a validator.

  npm run central                   run (configured by CENTRAL_* variables, see README)
  npm run central -- --fresh        run with an empty database, in a home whose database is missing
  npm run central -- doctor         check database, keys, gateway, clock …, with remedies; --archive FILE writes an
                                    archive for support
  npm run central -- backup                    copy the SQLite database, also beside a running central API; prints the copy
  npm run central -- restore [BACKUP]          replace the database by a backup, the newest by default; the central API must not
                                               run, and the replaced database is kept
  npm run central -- restore --list            list the backups, newest first
  npm run central -- move --to postgres://…    move the SQLite database to an empty PostgreSQL database; the central API must
                                               not run. After an interruption, repeat the command, which continues
  npm run central -- move --to-file FILE       the same, with the address in a file, for an address with a password
  npm run central -- move --undo               make the moved SQLite database usable again, without the changes since the move
  npm run central -- hotkey         print the central API's ss58 hotkey; creates the key if it is absent
  npm run central -- collateral list           list deposits of nodes and providers, one JSON line each
  npm run central -- collateral add SUBJECT NOTE
                                               record a deposit: SUBJECT is a node's id, or the hotkey of a provider,
                                               for all of the provider's nodes
  npm run central -- collateral remove SUBJECT remove a recorded deposit
  npm run central -- provider ban HOTKEY --reason TEXT
                                               ban a provider: no new rentals and no payouts; its running pods stay
  npm run central -- provider unban HOTKEY --reason TEXT
                                               end the ban
  npm run central -- provider audit            list what operators did, newest first, one JSON line each
  npm run central -- operator grant EMAIL --reason TEXT
                                               grant an account the operator's role: it may call the routes below /api/operator
  npm run central -- operator revoke EMAIL --reason TEXT
                                               revoke the role at once
  npm run central -- operator list             list accounts with the role, one JSON line each
  npm run central -- clock                     show whether the central API trusts the clock of this host
  npm run central -- clock confirm             make the running central API trust this clock within seconds
  npm run central -- --version

${CONFIG_COMMANDS_HELP}

backup, restore, move, collateral, provider and operator work on CENTRAL_DATABASE, or central.db in CENTRAL_HOME, also beside a running central API;
--database FILE names another database, such as var/central.db of npm start. collateral exits with 1 if it changes nothing.
Backups are in CENTRAL_DATABASE_BACKUP_DIR, or in the folder database-backups beside the database; --folder DIR names another folder,
--keep N the number of backups that are kept.
`;

async function run([argument, ...more]: readonly string[]): Promise<void> {
  if (argument === 'doctor') return runDoctorCommand(more);
  if (argument === 'collateral') return runCollateral(more);
  if (argument === 'provider') return runProvider(more);
  if (argument === 'operator') return runOperator(more);
  if (argument === 'clock') return runClock(more);
  if (argument === 'backup' || argument === 'restore') return runBackup([argument, ...more]);
  if (argument === 'move') return runMove(more);
  if (more.length > 0)
    throw new ConfigError(`${argument} takes no further arguments: ${more.join(' ')}`);
  if (argument === '--help') return print(HELP);
  if (argument === '--version') return print(`${VERSION}\n`);
  const inspected = inspectConfig(CENTRAL_CONFIG, process.env);
  const further = errorMessages(() => isTracingConfigured(process.env));
  if (argument === '--check-config' || argument === '--print-config') {
    process.exitCode = runConfigCommand(argument, inspected, further, {
      out: print,
      error: complain,
    });
    return;
  }
  if (argument === 'hotkey') {
    const place = { kind: 'seed', path: centralSeedFileIn(process.env) } as const;
    const { showHotkey } = await import('../keys/key-commands.ts');
    return print(await showHotkey([], place, systemRandom));
  }
  if (argument !== undefined && argument !== '--fresh')
    throw new ConfigError(`unknown argument ${argument}; see --help`);
  const config = acceptedConfig(inspected, further);
  const { serve } = await import('./serve.ts');
  await serve(config, process.env, (stop) => stopOnSignal(stop, fail), {
    isNew: argument === '--fresh',
  });
}

async function runDoctorCommand(args: readonly string[]): Promise<never> {
  const { centralDoctor } = await import('./doctor/doctor.ts');
  const { doctorTerminal, runDoctor, systemDoctorPorts } = await import('#shared/check/doctor.ts');
  const doctor = centralDoctor(systemDoctorPorts(process.env));
  const status = await runDoctor(doctor, args, doctorTerminal(process.env));
  // Unanswered requests would keep the process alive.
  process.exit(status);
}

async function runCollateral(args: readonly string[]): Promise<void> {
  const { runCollateralCommand } = await import('./market/collateral/collateral-command.ts');
  const { centralDatabaseIn } = await import('./platform/central-home.ts');
  const { systemClock } = await import('#shared/runtime/clock.ts');
  const command = { args, usualDatabase: centralDatabaseIn(process.env) };
  const isDone = await runCollateralCommand(command, { clock: systemClock, print, complain });
  if (!isDone) process.exitCode = 1;
}

async function runBackup(args: readonly string[]): Promise<void> {
  const { runBackupCommand } = await import('../database/backup-command.ts');
  const { centralDatabaseIn, databaseBackupsIn } = await import('./platform/central-home.ts');
  const { systemClock } = await import('#shared/runtime/clock.ts');
  const address = centralDatabaseIn(process.env);
  const usual = { address, variable: 'CENTRAL_DATABASE', kind: 'central' } as const;
  const command = { args, usual, plan: databaseBackupsIn(process.env) };
  await runBackupCommand(command, { clock: systemClock, print });
}

async function runMove(args: readonly string[]): Promise<void> {
  const { runMoveCommand } = await import('../database/move/move-command.ts');
  const { CENTRAL_MOVE: kind } = await import('./move.ts');
  const { centralDatabaseIn } = await import('./platform/central-home.ts');
  const { systemClock: clock } = await import('#shared/runtime/clock.ts');
  const { withProgress } = await import('#shared/runtime/progress.ts');
  const address = centralDatabaseIn(process.env);
  const usual = { address, variable: 'CENTRAL_DATABASE', kind: 'central' } as const;
  const { stdout, stderr } = process;
  await withProgress('moving the database', { clock, stdout, stderr }, (output, progress) =>
    runMoveCommand({ args, usual, kind }, { clock, random: systemRandom, progress, ...output }),
  );
}

async function runProvider(args: readonly string[]): Promise<void> {
  const { runProviderCommand } = await import('./providers/provider-command.ts');
  const { command, ports } = await operatorCommand(args);
  await runProviderCommand(command, ports);
}

async function runOperator(args: readonly string[]): Promise<void> {
  const { runOperatorCommand } = await import('./accounts/operator-command.ts');
  const { command, ports } = await operatorCommand(args);
  await runOperatorCommand(command, ports);
}

async function runClock(args: readonly string[]): Promise<void> {
  const { runClockCommand } = await import('#shared/runtime/clock-file.ts');
  const { CENTRAL_HOME: home } = readCentralConfig(process.env);
  print(runClockCommand(args, home, systemRandom));
}

/** Arguments and ports of a command whose changes are audited. */
async function operatorCommand(args: readonly string[]) {
  const { centralDatabaseIn } = await import('./platform/central-home.ts');
  const { systemClock } = await import('#shared/runtime/clock.ts');
  const operator = process.env['SUDO_USER'] ?? userInfo().username;
  return {
    command: { args, operator, usualDatabase: centralDatabaseIn(process.env) },
    ports: { clock: systemClock, random: systemRandom, print },
  };
}

function print(text: string): void {
  process.stdout.write(text);
}

function complain(text: string): void {
  process.stderr.write(text);
}

function fail(error: unknown): void {
  complain(`podwright central API: ${messageOf(error)}\n`);
  process.exitCode = exitStatusOf(error);
}

await run(process.argv.slice(2)).catch((error: unknown) => {
  fail(error);
  // Handles that are still open would keep the process running.
  process.exit();
});
