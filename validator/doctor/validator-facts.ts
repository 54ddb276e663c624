/** Facts for the validator's doctor, collected concurrently, each with a deadline. */
import { existsSync } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { type ClockFacts, readClockFacts } from '#shared/check/clock.check.ts';
import { configurationFacts } from '#shared/check/configuration.check.ts';
import { type DiskUse, nearestFolder, readDiskUse } from '#shared/check/disk.check.ts';
import type { DoctorPorts } from '#shared/check/doctor.ts';
import { type Observed, observe } from '#shared/check/observe.ts';
import { localHostAndPort } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { type Environment, inspectConfig } from '#shared/runtime/config.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { servesTls } from '#shared/tls/tls-mode.ts';
import { createSecureTransport, PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import type { RootKeySet } from '#shared/updates/root-key-set.ts';
import { createCentralClient } from '../central-client.ts';
import { readKnownCheckPolicy } from '../checks/checks.ts';
import { storeBackups, storeTarget, VALIDATOR_CONFIG, type ValidatorConfig } from '../config.ts';
import { type DatabaseFacts, readDatabaseFacts } from '../database/database.check.ts';
import { isPostgresAddress } from '../database/open-database.ts';
import type { DatabaseLocation } from '../database/ownership.ts';
import { openKey } from '../keys/key-file.ts';
import { ownKeyLocation } from '../keys/own-key.ts';
import { trustedHotkeys } from '../keys/trusted-hotkeys.ts';
import { readSshVersion } from '../probes/openssh-login.ts';
import { readProbeAccounts } from '../probes/probe-accounts.ts';
import { type StoreSummary, summarizeStore, withStore } from '../store/evidence-store.ts';
import { createReadTag } from '../updates/image-registry.ts';
import { publishedChain } from '../updates/key-set.store.ts';
import { releaseLoginOf } from '../updates/release.service.ts';
import { burnRecipient } from '../weights/compute-weights.ts';
import { fileMetagraph } from '../weights/metagraph.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../weights/weight-policy.ts';
import { explained, observeHotkey } from './observed-hotkey.ts';

/** Observed facts; null instead of an observation if nothing is configured that could be queried. */
export type ValidatorFacts = {
  config: ValidatorConfig;
  nowMs: number;
  /** ss58 of the validator's key. */
  key: Observed<string>;
  /** VALIDATOR_HOME; null before the validator has created the folder. */
  home: Observed<{ mode: number; writable: boolean } | null>;
  ledger: Observed<StoreSummary | null>;
  /** Damage and backups of the store. */
  storeFile: DatabaseFacts;
  /** The published key set; null if there is none. */
  keySet: Observed<RootKeySet | null>;
  policies: Observed<string>;
  metagraph: Observed<MetagraphFacts> | null;
  /** Number of accounts of hidden rentals. */
  probeAccounts: Observed<number> | null;
  /** Version of the OpenSSH client; null if no hidden rentals are made. */
  sshClient: Observed<string> | null;
  /** Number of executors that the central API lists for us; null without a key to sign with. */
  central: Observed<number> | null;
  /** ss58 that the central API reports as its own. */
  centralHotkey: Observed<string>;
  /** ss58 that the listener at our own address reports. */
  gateway: Observed<string>;
  /** Digest of the agent's tag. */
  registry: Observed<string> | null;
  time: ClockFacts;
  disk: Observed<DiskUse>;
};

export type MetagraphFacts = {
  /** Number of registered neurons. */
  registered: number;
  /**
   * Hotkey or uid that must be registered before weights can be posted and is not registered; null if none is missing.
   */
  missing: string | null;
};

const KEY_MS = 15_000;
const READ_MS = 10_000;
const CENTRAL_MS = 26_000;
const GATEWAY_MS = 5_000;
const PERMISSION_BITS = 0o777;

export function readConfigurationFacts(environment: Environment) {
  const look = inspectConfig(VALIDATOR_CONFIG, environment);
  return { config: look.config, facts: configurationFacts(look) };
}

export async function readFacts(
  ports: DoctorPorts,
  config: ValidatorConfig,
): Promise<ValidatorFacts> {
  const { clock, runCommand } = ports;
  const key = await observe(clock, KEY_MS, () => openOwnKey(config));
  const { VALIDATOR_METAGRAPH: metagraphFile, VALIDATOR_HOME: path } = config;
  const { VALIDATOR_PROBE_ACCOUNTS_FILE: accountsFile } = config;
  const [
    home,
    ledger,
    storeFile,
    keySet,
    policies,
    metagraph,
    probeAccounts,
    sshClient,
    central,
    centralHotkey,
    gateway,
    registry,
    time,
    disk,
  ] = await Promise.all([
    observe(clock, READ_MS, () => readHome(path)),
    observe(clock, READ_MS, () => summarizeStore(storeTarget(config))),
    readDatabaseFacts(clock, storeLocation(config), storeBackups(config)),
    observe(clock, READ_MS, () => readKeySet(config)),
    observe(clock, READ_MS, async () => readPolicies(config)),
    metagraphFile === undefined
      ? null
      : observe(clock, READ_MS, () => readMetagraph(metagraphFile, config)),
    accountsFile === undefined
      ? null
      : observe(clock, READ_MS, async () => readProbeAccounts(accountsFile).accounts.length),
    accountsFile === undefined ? null : observe(clock, READ_MS, () => readSshVersion(runCommand)),
    'problem' in key ? null : listExecutors(ports, config, key.value),
    observeHotkey({
      clock,
      baseUrl: config.VALIDATOR_CENTRAL_URL.replace(/\/+$/, ''),
      transport: PLAIN_TRANSPORT,
      timeoutMs: READ_MS,
    }),
    observeHotkey({
      clock,
      baseUrl: gatewayUrl(config),
      transport: gatewayUrl(config).startsWith('https:')
        ? createSecureTransport({ trust: 'anybody', clock })
        : PLAIN_TRANSPORT,
      timeoutMs: GATEWAY_MS,
    }),
    readImageDigest(clock, config),
    readClockFacts({ clock, runCommand, timeFrom: config.VALIDATOR_CENTRAL_URL, home: path }),
    readDiskUse({ clock, runCommand, path: nearestFolder(path) }),
  ]);
  return {
    config,
    nowMs: clock.now(),
    home,
    ledger,
    storeFile,
    keySet,
    policies,
    metagraph,
    probeAccounts,
    sshClient,
    central,
    centralHotkey,
    gateway,
    registry,
    time,
    disk,
    key: 'problem' in key ? key : { value: key.value.hotkey },
  };
}

export function storeLocation(config: ValidatorConfig): DatabaseLocation {
  return { address: storeTarget(config), variable: 'VALIDATOR_DATABASE', kind: 'evidence' };
}

/** Opens the key as a start does, but creates none. */
async function openOwnKey(config: ValidatorConfig): Promise<Signer> {
  const signer = await openKey(ownKeyLocation(config), null);
  trustedHotkeys(signer.hotkey, config.VALIDATOR_KEY_SET);
  return signer;
}

/** Returns null before the first start, too. */
async function readKeySet(config: ValidatorConfig): Promise<RootKeySet | null> {
  const { address, variable } = storeLocation(config);
  if (!isPostgresAddress(address) && !existsSync(address)) return null;
  const chain = await withStore({ address, variable }, 'read', publishedChain);
  return chain.at(-1)?.key_set ?? null;
}

async function readHome(path: string) {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (found === null) return null;
  const writable = await access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
  return { mode: found.mode & PERMISSION_BITS, writable };
}

async function readMetagraph(
  path: string,
  { VALIDATOR_WEIGHT_POLICY: policyFile }: ValidatorConfig,
): Promise<MetagraphFacts> {
  const { neurons } = await fileMetagraph(path).read([]);
  const policy = readWeightPolicy(policyFile ?? DEFAULT_POLICY_FILE);
  const isRegistered = burnRecipient(policy, neurons) !== null;
  const missing = isRegistered ? null : (policy.burn_hotkey ?? 'uid 0');
  return { registered: neurons.length, missing };
}

/** Describes both policies. Throws if a file is invalid. */
function readPolicies({
  VALIDATOR_WEIGHT_POLICY,
  VALIDATOR_CHECK_POLICY,
}: ValidatorConfig): string {
  const weights = readWeightPolicy(VALIDATOR_WEIGHT_POLICY ?? DEFAULT_POLICY_FILE);
  readKnownCheckPolicy(VALIDATOR_CHECK_POLICY);
  return `weights by ${VALIDATOR_WEIGHT_POLICY ?? 'the built-in policy'} (version ${weights.version}), checks by ${
    VALIDATOR_CHECK_POLICY ?? 'the built-in policy'
  }`;
}

/** Sends the signed request that begins every inspection pass. */
function listExecutors({ clock, random }: DoctorPorts, config: ValidatorConfig, signer: Signer) {
  const baseUrl = config.VALIDATOR_CENTRAL_URL.replace(/\/+$/, '');
  const central = createCentralClient({ baseUrl, signer, clock, random });
  return explained(
    clock,
    baseUrl,
    observe(clock, CENTRAL_MS, async () => (await central.listExecutors()).length),
  );
}

function gatewayUrl(config: ValidatorConfig): string {
  const { VALIDATOR_HOST: host, VALIDATOR_PORT: port, VALIDATOR_TLS: mode } = config;
  return `${servesTls(mode, host) ? 'https' : 'http'}://${localHostAndPort(host, port)}`;
}

function readImageDigest(clock: Clock, config: ValidatorConfig): Promise<Observed<string> | null> {
  const { VALIDATOR_AGENT_IMAGE: image, VALIDATOR_AGENT_TAG: tag } = config;
  if (image === undefined) return Promise.resolve(null);
  return observe(clock, READ_MS, async () => {
    const { digest } = await createReadTag(clock)(image, tag, releaseLoginOf(config));
    return digest;
  });
}
