/** What the validator's doctor sees: each question by itself, with a deadline. */
import { access, constants, stat } from 'node:fs/promises';
import { z } from 'zod';
import { type ClockFacts, readClockFacts } from '#shared/check/clock.facts.ts';
import { type DiskUse, nearestFolder, readDiskUse } from '#shared/check/disk-use.ts';
import { type Told, tell } from '#shared/check/told.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import { localPlaceOf } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { type Environment, lookAtConfig } from '#shared/runtime/config.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { servesTls } from '#shared/tls/tls-mode.ts';
import { createSecureTransport, PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import { createCentralClient } from '../central-client.ts';
import { readKnownCheckPolicy } from '../checks/known-check-policy.ts';
import { storeTarget, VALIDATOR_CONFIG, type ValidatorConfig } from '../config.ts';
import { ownKeyLocation } from '../keys/key-commands.ts';
import { openKey } from '../keys/key-file.ts';
import { trustedHotkeys } from '../keys/trusted-hotkeys.ts';
import { type StoreSummary, summarizeStore } from '../store/evidence-store.ts';
import { createReadTag } from '../updates/image-registry.ts';
import { releaseLoginOf } from '../updates/release-login.ts';
import { fileMetagraph } from '../weights/metagraph.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../weights/weight-policy.ts';

export type DoctorPorts = {
  clock: Clock;
  random: Random;
  runCommand: RunCommand;
  environment: Environment;
};

export type ConfigurationFacts = { problems: readonly string[]; unknown: readonly string[] };

/** Null: nothing is configured, so that there is nothing to ask. */
export type ValidatorFacts = {
  config: ValidatorConfig;
  /** The key's ss58. */
  key: Told<string>;
  /** Null: it is not there yet. */
  home: Told<{ mode: number; writable: boolean } | null>;
  ledger: Told<StoreSummary | null>;
  policies: Told<string>;
  /** How many are registered. */
  metagraph: Told<number> | null;
  /** How many executors the central API lists for us; null: there is no key to ask with. */
  central: Told<number> | null;
  /** The ss58 that the central API says it commands with. */
  centralHotkey: Told<string>;
  /** The ss58 that our own address answers with. */
  gateway: Told<string>;
  /** The digest that the agent's tag names. */
  registry: Told<string> | null;
  time: ClockFacts;
  disk: Told<DiskUse>;
};

const KEY_MS = 15_000;
const LOOK_MS = 10_000;
const CENTRAL_MS = 26_000;
const GATEWAY_MS = 5_000;
const MAX_VERSION_BYTES = 16_384;
const PERMISSION_BITS = 0o777;
const VersionAnswer = z.object({ hotkey: z.string() });

export function readConfigurationFacts(environment: Environment) {
  const { config, problems, warnings } = lookAtConfig(VALIDATOR_CONFIG, environment);
  const words = (list: typeof problems) => list.map(({ message }) => message);
  return { config, facts: { problems: words(problems), unknown: words(warnings) } };
}

export async function readFacts(
  ports: DoctorPorts,
  config: ValidatorConfig,
): Promise<ValidatorFacts> {
  const { clock, runCommand } = ports;
  const key = await tell(clock, KEY_MS, () => openOwnKey(config));
  const { VALIDATOR_METAGRAPH: metagraphFile, VALIDATOR_HOME: path } = config;
  const [home, ledger, policies, metagraph, central, centralHotkey, gateway, registry, time, disk] =
    await Promise.all([
      tell(clock, LOOK_MS, () => readHome(path)),
      tell(clock, LOOK_MS, () => summarizeStore(storeTarget(config))),
      tell(clock, LOOK_MS, async () => readPolicies(config)),
      metagraphFile === undefined
        ? null
        : tell(
            clock,
            LOOK_MS,
            async () => (await fileMetagraph(metagraphFile).read([])).neurons.length,
          ),
      'problem' in key ? null : askCentral(ports, config, key.value),
      tell(clock, LOOK_MS, () => askCentralHotkey(clock, config)),
      tell(clock, GATEWAY_MS, () => askGateway(clock, config)),
      askRegistry(clock, config),
      readClockFacts({ clock, runCommand, timeFrom: config.VALIDATOR_CENTRAL_URL }),
      readDiskUse({ clock, runCommand, path: nearestFolder(path) }),
    ]);
  return {
    ...{ config, home, ledger, policies, metagraph, central, centralHotkey, gateway },
    ...{ registry, time, disk },
    key: 'problem' in key ? key : { value: key.value.hotkey },
  };
}

/** As a start does, but that it makes none. */
async function openOwnKey(config: ValidatorConfig): Promise<Signer> {
  const signer = await openKey(ownKeyLocation(config), null);
  trustedHotkeys(signer.hotkey, config.VALIDATOR_KEY_SET);
  return signer;
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

/** Their versions, in words. Throws for a file that is none. */
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

/** By the request that every pass begins with. */
function askCentral({ clock, random }: DoctorPorts, config: ValidatorConfig, signer: Signer) {
  const baseUrl = config.VALIDATOR_CENTRAL_URL.replace(/\/+$/, '');
  const central = createCentralClient({ baseUrl, signer, clock, random });
  return tell(clock, CENTRAL_MS, async () => (await central.listExecutors()).length);
}

/** By the answer that is open to everybody; an older central API does not say it. */
async function askCentralHotkey(clock: Clock, config: ValidatorConfig): Promise<string> {
  const url = `${config.VALIDATOR_CENTRAL_URL.replace(/\/+$/, '')}/version`;
  const answer = await fetch(url, { signal: clock.deadline(LOOK_MS), redirect: 'error' });
  const text = await boundedText(answer, MAX_VERSION_BYTES);
  const parsed = VersionAnswer.safeParse(parseJson(text));
  if (!parsed.success) throw new Error(`/version answered with status ${answer.status}, no hotkey`);
  return parsed.data.hotkey;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function askGateway(clock: Clock, config: ValidatorConfig): Promise<string> {
  const { VALIDATOR_HOST: host, VALIDATOR_PORT: port, VALIDATOR_TLS: mode } = config;
  const secure = servesTls(mode, host);
  const transport = secure ? createSecureTransport({ trust: 'anybody', clock }) : PLAIN_TRANSPORT;
  try {
    const answer = await transport.fetch(
      new URL(`${secure ? 'https' : 'http'}://${localPlaceOf(host, port)}/version`),
      { method: 'GET', headers: {}, signal: clock.deadline(GATEWAY_MS) },
    );
    return VersionAnswer.parse(await answer.json()).hotkey;
  } finally {
    transport.close();
  }
}

function askRegistry(clock: Clock, config: ValidatorConfig): Promise<Told<string> | null> {
  const { VALIDATOR_AGENT_IMAGE: image, VALIDATOR_AGENT_TAG: tag } = config;
  if (image === undefined) return Promise.resolve(null);
  return tell(clock, LOOK_MS, async () => {
    const { digest } = await createReadTag(clock)(image, tag, releaseLoginOf(config));
    return digest;
  });
}
