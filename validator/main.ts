/** `npm run validator`: runs one validator against a remote central API, or runs one of its commands. */
import { readArguments, requireNone } from '#shared/runtime/arguments.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import {
  acceptedConfig,
  CONFIG_COMMANDS_HELP,
  type ConfigCommand,
  errorMessages,
  exitStatusOf,
  inspectConfig,
  runConfigCommand,
} from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { stopOnSignal } from '#shared/runtime/node-process.ts';
import { withProgress } from '#shared/runtime/progress.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { isTracingConfigured } from '#shared/telemetry/tracing.ts';
import { centralDatabaseIn } from './central/platform/central-home.ts';
import { readKnownCheckPolicy } from './checks/checks.ts';
import {
  centralUrlIn,
  keyConfigIn,
  readValidatorConfig,
  storeBackupsIn,
  storeTargetIn,
  VALIDATOR_CONFIG,
  type ValidatorConfig,
} from './config.ts';
import { checkGatewayFiles } from './gateway/gateway-certificate.ts';
import { encryptSeed, proveAccountOf, showHotkey, signKeySetFile } from './keys/key-commands.ts';
import { openKey } from './keys/key-file.ts';
import { evidenceKeys, keyProblem, ownKeyLocation } from './keys/own-key.ts';
import { probeAccountsIn } from './probes/probe-accounts.ts';
import type { StoreLocation } from './store/evidence-store.ts';
import { releaseLoginOf } from './updates/release.service.ts';
import { fileMetagraph } from './weights/metagraph.ts';
import {
  DEFAULT_POLICY_FILE,
  readWeightPolicy,
  requireListedModels,
} from './weights/weight-policy.ts';
import type { WeightSettings } from './weights/weights.ts';

const HELP = `podwright validator ${VERSION}

Checks the executors that a central API lists, reports verdicts, computes and posts weights, and relays that API's
commands to agents.

  npm run validator                            run (configured by VALIDATOR_* variables, see README)
  npm run validator -- --fresh                 run with an empty evidence store, in a home whose store is missing
  npm run validator -- backup                  copy the evidence store in a SQLite file, also beside a running validator
  npm run validator -- restore [BACKUP]        replace the store by a backup, the newest by default; the validator must not
                                               run, and the replaced store is kept
  npm run validator -- restore --list          list the backups, newest first
  npm run validator -- move --to postgres://…  move the evidence store from a SQLite file to an empty PostgreSQL database; the
                                               validator must not run. After an interruption, repeat the command, which
                                               continues
  npm run validator -- move --to-file FILE     the same, with the address in a file, for an address with a password
  npm run validator -- move --undo             make the moved SQLite file usable again, without the changes since the move
  npm run validator -- doctor                  check key, evidence store, central API, gateway, clock …, with remedies
  npm run validator -- diag                    write that report and more to an archive for support
  npm run validator -- explain EXECUTOR        explain an executor's score and what would raise it
  npm run validator -- replay [EPOCH]          recompute stored weights, byte for byte, from the stored evidence;
                                               the last epoch by default; also reports weights that the central API has
                                               acknowledged but that the store lacks
  npm run validator -- replay [EPOCH] --policy FILE
                                               show the weights under another policy
  npm run validator -- evidence export [EXECUTOR]
                                               export and verify signed documents of check runs, one JSON line each
  npm run validator -- policy coverage         print for each cheat whether the check policy detects it, and what follows
  npm run validator -- policy coverage --policy FILE --at DATE
                                               for another policy, at another date
  npm run validator -- ledger verify [FOLDER]  verify the sums of the central API's money ledger, with the archives in
                                               FOLDER or at the paths where they were written
  npm run validator -- ledger export [FOLDER] [--format jsonl|csv]
                                               export all its transfers and accounts
  npm run validator -- ledger close            close its months that have ended
  npm run validator -- ledger archive MONTH FOLDER
                                               move a closed month such as 2026-10 to a file in FOLDER
  npm run validator -- ledger pay-in EMAIL USD REFERENCE
                                               credit a payment received by other means, once per reference
  npm run validator -- payout list             list payouts of the central API, newest first
  npm run validator -- payout run              request payouts for all providers and accounts above the minimum
  npm run validator -- hotkey                  print the ss58 of the key; creates a missing key
  npm run validator -- encrypt-key SEED_FILE KEY_FILE PASSPHRASE_FILE
                                               write the key of a seed to an encrypted key file
  npm run validator -- sign-key-set FILE       sign and print a set of keys that may command agents
  npm run validator -- key-set new-root SEED_FILE
                                               create a root key (mode 0600) and print its ss58, on an offline machine
  npm run validator -- key-set draft VALIDATOR_SS58 THRESHOLD ROOT_SS58 …
                                               print a first key set, to be signed by THRESHOLD of the root keys
  npm run validator -- key-set next FILE       print the key set after the one in FILE, valid for another year
  npm run validator -- key-set recover FILE STOLEN_SS58 NEW_SS58
                                               print the next key set: it revokes the stolen key, and agents discard the
                                               release sequence that they have accepted
  npm run validator -- key-set check FILE      print what a key set contains and which root keys have signed it
  npm run validator -- key-set sign FILE SEED_FILE
  npm run validator -- key-set sign FILE KEY_FILE PASSPHRASE_FILE
                                               print the key set with the signature of one more root key
  npm run validator -- key-set combine FILE FILE …
                                               print one key set with the signatures of all files
  npm run validator -- key-set publish FILE    check a signed key set and give it to agents
  npm run validator -- key-set show            print the published key set
  npm run validator -- prove-account ACCOUNT   prove that an account of the central API belongs to this validator
  npm run validator -- release show            show the release that agents should run, and earlier ones
  npm run validator -- release rollout PERMILLE
                                               set the share of agents, in thousandths, that get the release
  npm run validator -- release rollback REASON
                                               roll all agents back to the previous release at once
  npm run validator -- release min-sequence N  agents below sequence N get the release whatever the share
  npm run validator -- release min-agent VERSION
                                               agents older than VERSION do not get the release
  npm run validator -- release notes TEXT      set the release notes
  npm run validator -- clock                   show whether the validator trusts the clock of this host
  npm run validator -- clock confirm           make the running validator trust it within seconds
  npm run validator -- --version

${CONFIG_COMMANDS_HELP}

Backups are in VALIDATOR_DATABASE_BACKUP_DIR, or in the folder database-backups beside the store; --folder DIR names another,
--keep N the number of backups that are kept, --ledger FILE another store.
explain, replay and evidence read the evidence store in VALIDATOR_HOME or VALIDATOR_DATABASE, and release writes it, also
beside a running validator, which informs agents within five minutes; --ledger FILE names another store, such as
var/validator.db of npm start. Evidence must be signed with the validator's own key, or with one of VALIDATOR_KEY_SET while
it is valid; --hotkey SS58, which may be repeated, names other keys instead, for the store of another validator.
replay and evidence ask the central API at VALIDATOR_CENTRAL_URL, or with --ledger the one that --central URL names, for the
weights that it has acknowledged, and report if the store has lost them.
ledger and payout work on the central API's database, also beside a running one: CENTRAL_DATABASE, or central.db in
CENTRAL_HOME; --database FILE names another, such as var/central.db of npm start. They exit with 1 if they find a problem.
key-set publish and show use the evidence store, too; the other key-set commands only read the named files.
payout run needs the CENTRAL_PAYOUTS of the central API, which then calls the payment processor.
`;

const FLAG = { type: 'boolean' } as const;
const TEXT = { type: 'string' } as const;
const OPTIONS = {
  help: FLAG,
  version: FLAG,
  'check-config': FLAG,
  'print-config': FLAG,
  fresh: FLAG,
  ledger: TEXT,
  central: TEXT,
  policy: TEXT,
  hotkey: { type: 'string', multiple: true },
  database: TEXT,
  format: TEXT,
  at: TEXT,
} as const;
const TERMINAL = { clock: systemClock, stdout: process.stdout, stderr: process.stderr };

async function run(argv: readonly string[]): Promise<void> {
  const [first, ...rest] = argv;
  if (first === 'doctor' || first === 'diag') return runDoctorCommand(first, rest);
  if (first === 'clock') return runClock(rest);
  const { values, words: positionals, problems } = readArguments(argv, OPTIONS);
  if (first === 'backup' || first === 'restore') return runBackup(argv);
  if (first === 'move') return runMove(rest);
  if (values.help === true) return print(HELP);
  requireNone(problems);
  if (values.version === true) return print(`${VERSION}\n`);
  const [command, ...words] = positionals;
  if (command === 'ledger') return runLedgerCommand(words, values);
  if (command === 'policy') return print(await policyCoverage(words, values));
  if (command === 'payout') return runPayout(words, values.database ?? null);
  if (command === 'hotkey') {
    const location = ownKeyLocation(keyConfigIn(process.env));
    return print(await showHotkey(words, location, systemRandom));
  }
  if (command === 'key-set') return runKeySet(words, values.ledger);
  if (command === 'encrypt-key') return print(await encryptSeed(words, systemRandom));
  const isKeyCommand = command === 'sign-key-set' || command === 'prove-account';
  if (command !== undefined && !isKeyCommand) return runStoreCommand(positionals, values);
  if (values['check-config'] === true) return checkConfig('--check-config');
  if (values['print-config'] === true) return checkConfig('--print-config');
  if (command !== undefined) {
    const config = readValidatorConfig(process.env);
    const work = command === 'sign-key-set' ? signKeySetFile : proveAccountOf;
    return print(await work(words, config, systemClock));
  }
  const look = inspectConfig(VALIDATOR_CONFIG, process.env);
  const config = acceptedConfig(look, await furtherProblems(look.config));
  const checks = readKnownCheckPolicy(config.VALIDATOR_CHECK_POLICY);
  const { serve } = await import('./serve.ts');
  const weightSettings = weightSettingsOf(config);
  const settings = { weightSettings, checks, isNew: values.fresh === true };
  await serve(config, settings, process.env, (stop) => stopOnSignal(stop, fail));
}

async function runDoctorCommand(
  command: 'doctor' | 'diag',
  args: readonly string[],
): Promise<never> {
  const { validatorDoctor } = await import('./doctor/doctor.ts');
  const { doctorTerminal, runDiag, runDoctor, systemDoctorPorts } = await import(
    '#shared/check/doctor.ts'
  );
  const doctor = validatorDoctor(systemDoctorPorts(process.env));
  const terminal = doctorTerminal(process.env);
  const status =
    command === 'doctor'
      ? await runDoctor(doctor, args, terminal)
      : await runDiag('validator', doctor, args, terminal);
  // Unanswered requests would keep the process alive.
  process.exit(status);
}

async function runClock(args: readonly string[]): Promise<void> {
  const { runClockCommand } = await import('#shared/runtime/clock-file.ts');
  const { VALIDATOR_HOME: home } = readValidatorConfig(process.env);
  print(runClockCommand(args, home, systemRandom));
}

async function checkConfig(command: ConfigCommand): Promise<void> {
  const look = inspectConfig(VALIDATOR_CONFIG, process.env);
  const further = await furtherProblems(look.config);
  process.exitCode = runConfigCommand(command, look, further, { out: print, error: complain });
}

/** Returns the problems of the files that the variables name, and those of the variables for traces. */
async function furtherProblems(config: ValidatorConfig | null): Promise<string[]> {
  const ofTracing = errorMessages(() => isTracingConfigured(process.env));
  if (config === null) return ofTracing;
  const ofFiles = errorMessages(
    () => weightSettingsOf(config),
    () => readKnownCheckPolicy(config.VALIDATOR_CHECK_POLICY),
    () => requirePoliciesAgree(config),
    () => checkGatewayFiles(config),
    () => releaseLoginOf(config),
    () => probeAccountsIn(config),
  );
  const ofKey = await keyProblem(ownKeyLocation(config), config.VALIDATOR_KEY_SET);
  return [...new Set(ofFiles), ...(ofKey === null ? [] : [ofKey]), ...ofTracing];
}

function requirePoliciesAgree(config: ValidatorConfig): void {
  const { models } = readKnownCheckPolicy(config.VALIDATOR_CHECK_POLICY);
  requireListedModels(weightSettingsOf(config).policy, models);
}

type StoreCommandOptions = {
  ledger?: string | undefined;
  central?: string | undefined;
  policy?: string | undefined;
  hotkey?: string[] | undefined;
};

async function runStoreCommand(
  words: readonly string[],
  { ledger, central, policy, hotkey = [] }: StoreCommandOptions,
): Promise<void> {
  const keys = () => evidenceKeys(hotkey, () => keyConfigIn(process.env));
  const store = storeLocationOf(ledger);
  const { createPublishedWeights } = await import('./weights/published-weights.ts');
  const centralUrl = central ?? (ledger === undefined ? centralUrlIn(process.env) : null);
  const published = centralUrl === null ? null : createPublishedWeights(centralUrl, systemClock);
  const request = { words, store, policyFile: policy ?? null, keys, published };
  const { runReleaseCommand } = await import('./updates/release-command.ts');
  const { runEvidenceCommand } = await import('./weights/evidence-commands.ts');
  const run = words[0] === 'release' ? runReleaseCommand : runEvidenceCommand;
  const isOk = await withProgress('reading the evidence store', TERMINAL, (output) =>
    run(request, output),
  );
  if (!isOk) process.exitCode = 1;
}

function storeLocationOf(ledger: string | undefined): StoreLocation {
  if (ledger !== undefined) return { address: ledger, variable: '--ledger' };
  return { address: storeTargetIn(process.env), variable: 'VALIDATOR_DATABASE' };
}

async function runKeySet(words: readonly string[], ledger: string | undefined): Promise<void> {
  const { runKeySetCommand } = await import('./updates/key-set-commands.ts');
  const text = await runKeySetCommand(words, {
    nowMs: systemClock.now(),
    random: systemRandom,
    store: () => storeLocationOf(ledger),
    ownKey: () => openKey(ownKeyLocation(keyConfigIn(process.env)), null),
  });
  print(text);
}

async function policyCoverage(
  words: readonly string[],
  { policy, at }: { policy?: string | undefined; at?: string | undefined },
): Promise<string> {
  const { runCoverageCommand } = await import('./coverage/coverage-command.ts');
  const { VALIDATOR_CHECK_POLICY: checks, VALIDATOR_WEIGHT_POLICY: weights } = process.env;
  const request = {
    words,
    at: at ?? null,
    checks: readKnownCheckPolicy(policy ?? checks),
    weights: readWeightPolicy(weights ?? DEFAULT_POLICY_FILE),
  };
  return runCoverageCommand(request, systemClock.now());
}

async function runBackup(args: readonly string[]): Promise<void> {
  const { runBackupCommand } = await import('./database/backup-command.ts');
  const address = storeTargetIn(process.env);
  const usual = { address, variable: 'VALIDATOR_DATABASE', kind: 'evidence' } as const;
  const command = { args, usual, plan: storeBackupsIn(process.env) };
  await runBackupCommand(command, { clock: systemClock, print });
}

async function runMove(args: readonly string[]): Promise<void> {
  const { runMoveCommand } = await import('./database/move/move-command.ts');
  const { EVIDENCE_MOVE: kind } = await import('./store/evidence-store.ts');
  const address = storeTargetIn(process.env);
  const usual = { address, variable: 'VALIDATOR_DATABASE', kind: 'evidence' } as const;
  await withProgress('moving the evidence store', TERMINAL, (output, progress) =>
    runMoveCommand(
      { args, usual, kind },
      { clock: systemClock, random: systemRandom, progress, ...output },
    ),
  );
}

async function runLedgerCommand(
  words: readonly string[],
  { database, format }: { database?: string | undefined; format?: string | undefined },
): Promise<void> {
  const { runMoneyLedgerCommand } = await import('./central/money/ledger-command.ts');
  const usualDatabase = centralDatabaseIn(process.env);
  const request = { words, databaseFile: database ?? null, usualDatabase, format: format ?? null };
  const pods = await accountPods();
  const deps = { clock: systemClock, random: systemRandom, pods };
  const isOk = await withProgress('verifying the ledger', TERMINAL, (output) =>
    runMoneyLedgerCommand(request, deps, output),
  );
  if (!isOk) process.exitCode = 1;
}

/** Returns the service that restarts pods, stopped for lack of money, when a command adds money to their account. */
async function accountPods() {
  const { createAccountPods } = await import('./central/market/cut-off/cut-off.ts');
  return createAccountPods({ clock: systemClock, random: systemRandom });
}

async function runPayout(words: readonly string[], databaseFile: string | null): Promise<void> {
  const { runPayoutCommand } = await import('./central/money/payouts/payout-command.ts');
  const { paysOut } = await import('./central/money/payouts/payout-variable.ts');
  const place = { databaseFile, usualDatabase: centralDatabaseIn(process.env) };
  const { payoutKeyOf } = await import('./central/providers/provider.service.ts');
  const pods = await accountPods();
  const ports = { clock: systemClock, random: systemRandom, pods, payoutKeyOf, print };
  await runPayoutCommand({ ...place, words, isPaid: paysOut(process.env) }, ports);
}

function weightSettingsOf(config: ValidatorConfig): WeightSettings {
  const { VALIDATOR_METAGRAPH: metagraph } = config;
  return {
    policy: readWeightPolicy(config.VALIDATOR_WEIGHT_POLICY ?? DEFAULT_POLICY_FILE),
    metagraph: metagraph === undefined ? null : fileMetagraph(metagraph),
    embedded: false,
    cycleMs: config.VALIDATOR_CHECK_INTERVAL_S * 1000,
    epochMs: config.VALIDATOR_WEIGHTS_INTERVAL_S * 1000,
    retentionDays: config.VALIDATOR_EVIDENCE_DAYS,
    verdictDays: config.VALIDATOR_VERDICT_DAYS ?? null,
  };
}

function print(text: string): void {
  process.stdout.write(text);
}

function complain(text: string): void {
  process.stderr.write(text);
}

function fail(error: unknown): void {
  complain(`podwright validator: ${messageOf(error)}\n`);
  process.exitCode = exitStatusOf(error);
}

// The program that reads the output may close the pipe, as `head` does.
process.stdout.on('error', () => process.exit());
try {
  await run(process.argv.slice(2));
} catch (error) {
  fail(error);
  // Handles opened so far would keep the process alive.
  process.exit();
}
