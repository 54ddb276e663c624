/**
 * Composes a local marketplace: central API and validator in this process, agents as child processes, and demo data.
 */
import { z } from 'zod';
import { callJson } from '#shared/http/json-call.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { openGuardedClock } from '#shared/runtime/clock-file.ts';
import { createLog } from '#shared/runtime/log.ts';
import { agentArguments, COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import type { Progress } from '#shared/runtime/progress.ts';
import type { Random } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createSigner, type Signer } from '#shared/signing/sr25519.ts';
import { createAdapters } from '../central/adapters-from-config.ts';
import { requireRecordedKeys } from '../central/platform/database/own-keys.ts';
import { requireKeyFile } from '../database/open-database.ts';
import { readOrCreateSeedFile } from '../keys/key-file.ts';
import { createKeyThread } from '../keys/key-thread.ts';
import { type LocalAgent, startAgents } from './agents.ts';
import { awaitAgents, type StartingAgent } from './await-agents.ts';
import { createCappedFile } from './capped-file.ts';
import { databaseTarget, databaseVariable, localAdapters } from './central-settings.ts';
import { type DemoAccount, ensureDemoAccount, ensureProbeAccount } from './demo-account.ts';
import { type DemoFile, writeDemoFile } from './demo-file.ts';
import { type DemoProvider, logInProvider } from './demo-provider.ts';
import { type Home, shellVariables, writePrivateFile } from './home.ts';
import { planGpus } from './local-gpus.ts';
import { type MetricsAddresses, metricsUrls } from './metrics-listeners.ts';
import type { StartOptions } from './options.ts';
import { removePods } from './remove-pods.ts';
import { startServices, urlsOf } from './services.ts';

export type Marketplace = {
  demo: DemoFile;
  simulated: boolean;
  /** Stops everything; `keepPods` leaves pods running. */
  stop(keepPods: boolean): Promise<void>;
};

export type MarketplaceOptions = {
  options: StartOptions;
  home: Home;
  clock: Clock;
  random: Random;
  /** Environment of this process; agents inherit a few variables. */
  environment: Record<string, string | undefined>;
  progress: Progress;
  /** Aborts the start: everything stops again, and `startMarketplace` rejects. */
  signal: AbortSignal;
};

const WARM_UP_TIMEOUT_MS = 30_000;
const WARM_UP_OUTPUT_BYTES = 10_000;

/** Resolves when every executor is verified. Stops everything again if the start fails or `signal` ends it. */
export async function startMarketplace(parts: MarketplaceOptions): Promise<Marketplace> {
  const { options, home, random, progress, signal } = parts;
  const output = createCappedFile(home.log('marketplace'));
  const log = createLog({ name: 'marketplace', level: 'info' }, output);
  const guard = openGuardedClock(home.root, { clock: parts.clock, random, log });
  const { clock } = guard;
  const place = { address: home.centralDatabase, variable: '--home' };
  for (const file of [home.centralSeed, home.centralSecret, home.validatorSeed]) {
    requireKeyFile(file, place, { isNew: options.fresh });
  }
  const target = databaseTarget(parts.environment, home);
  await requireRecordedKeys(
    { address: target, variable: databaseVariable(target, home) },
    { seed: home.centralSeed, secret: home.centralSecret },
    { isNew: options.fresh },
  );
  const keys = createKeyThread();
  const signers = {
    central: await keys.open({ kind: 'seed', path: home.centralSeed }),
    validator: await keys.open({ kind: 'seed', path: home.validatorSeed }),
    // The provider's key is not in the key thread: it belongs to another party.
    provider: createSigner(readOrCreateSeedFile(home.providerSeed, random)),
  };
  const adapters = createAdapters(localAdapters(parts.environment, options.host), {
    clock,
    log,
    objectFolder: home.centralObjects,
    backupFolder: home.centralBackups,
  });
  const urls = urlsOf(options);
  progress.step('starting the central API and the validator');
  const [services] = await Promise.all([
    startServices({
      ...parts,
      clock,
      guard,
      database: target,
      log,
      signers,
      signaturesWaiting: keys.waiting,
      adapters,
    }),
    warmAgentCache(),
  ]);
  const { metrics: addresses, gatewayPin } = services;
  // The doctor reads this file. The address of a database server is not stored, because it may contain a password.
  writePrivateFile(
    home.variables('central'),
    shellVariables({
      CENTRAL_HOME: home.root,
      CENTRAL_HOST: options.host,
      CENTRAL_PORT: String(options.port),
      CENTRAL_METRICS_LISTEN: hostAndPort(addresses.central.host, addresses.central.port),
      CENTRAL_GATEWAY_URL: urls.validator,
      CENTRAL_GATEWAY_HOTKEY: signers.validator.hotkey,
      ...(gatewayPin === null ? {} : { CENTRAL_GATEWAY_PIN: gatewayPin }),
    }),
  );
  // The validator's other commands and the doctor read this file.
  writePrivateFile(
    home.variables('validator'),
    shellVariables({
      VALIDATOR_HOME: home.validator,
      VALIDATOR_DATABASE: home.validatorStore,
      VALIDATOR_SEED_FILE: home.validatorSeed,
      VALIDATOR_HOST: options.host,
      VALIDATOR_PORT: String(options['validator-port']),
      VALIDATOR_METRICS_LISTEN: hostAndPort(addresses.validator.host, addresses.validator.port),
      VALIDATOR_CENTRAL_URL: urls.api,
      VALIDATOR_CENTRAL_HOTKEY: signers.central.hotkey,
      VALIDATOR_ACCEPT_SIMULATED: 'true',
      VALIDATOR_PROBE_ACCOUNTS_FILE: home.probeAccountsFile,
    }),
  );
  const agents: LocalAgent[] = [];

  async function stop(keepPods: boolean): Promise<void> {
    if (!keepPods) await removePods(services.central, clock, progress.step);
    await services.close();
    await guard.stop();
    await Promise.all(agents.flatMap(childrenOf).map((child) => child.stop()));
  }

  try {
    signal.throwIfAborted();
    const account = await ensureDemoAccount(urls.api, home, random);
    await services.central.verifyAccount(account.email);
    await services.central.verifyAccount(await ensureProbeAccount(urls.api, home, random));
    const provider = await logInProvider(urls.portal, signers.provider, clock);
    const gpus = await planGpus(options.agents, runCommand);
    let demo: DemoFile | null = null;
    const refreshPids = () => {
      if (demo === null) return;
      demo = { ...demo, ...pidsOf(agents) };
      writeDemoFile(home, demo);
    };
    signal.throwIfAborted();
    progress.step(`starting ${options.agents} agents`);
    agents.push(
      ...(await startAgents({
        ...parts,
        log,
        gpus,
        provider,
        providerSigner: signers.provider,
        validatorHotkey: signers.validator.hotkey,
        metrics: services.metrics,
        onRestart: refreshPids,
        onEnd: progress.note,
      })),
    );
    progress.step('waiting for the validator to verify the executors');
    const children = agents.flatMap(childrenOf);
    const states = async () => startingAgents(agents, await provider.listNodes());
    await awaitAgents({ children, states, clock, progress, signal });
    const tickets = { account: account.ticket, provider: await provider.createTicket() };
    demo = await describe(parts, account, signers, { agents, metrics: services.metrics, tickets });
    writeDemoFile(home, demo);
    return { demo, simulated: gpus.some((gpu) => gpu.environment['AGENT_GPU'] !== 'nvidia'), stop };
  } catch (error) {
    await stop(!signal.aborted || options['keep-pods']);
    throw error;
  }
}

/** Fills the compile cache, so that the first start of an agent is as fast as later ones. */
async function warmAgentCache(): Promise<void> {
  await runCommand(process.execPath, agentArguments('--version'), {
    timeoutMs: WARM_UP_TIMEOUT_MS,
    maxOutputBytes: WARM_UP_OUTPUT_BYTES,
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE },
  });
}

function startingAgents(
  agents: readonly LocalAgent[],
  nodes: Awaited<ReturnType<DemoProvider['listNodes']>>,
): StartingAgent[] {
  return agents.map(({ executorId, process: { name } }) => {
    const node = nodes.find(({ id }) => id === executorId);
    const reasons = node?.blocking_reasons ?? [];
    return {
      name,
      isVerified: node?.status === 'available',
      reasons: reasons.map(({ code, message }) => `${message} (${code})`),
    };
  });
}

type DemoParts = {
  agents: readonly LocalAgent[];
  metrics: MetricsAddresses;
  /** Tickets that log a browser in. */
  tickets: { account: string; provider: string };
};

async function describe(
  { options, home }: MarketplaceOptions,
  account: DemoAccount,
  { central, validator, provider }: Record<'central' | 'validator' | 'provider', Signer>,
  { agents, metrics, tickets }: DemoParts,
): Promise<DemoFile> {
  const urls = urlsOf(options);
  const templates = await callJson(z.array(z.object({ id: z.string(), name: z.string() })), {
    method: 'GET',
    url: `${urls.api}/templates`,
  });
  return {
    base_url: urls.api,
    portal_url: urls.portal,
    console_url: new URL(`/#ticket=${tickets.account}`, urls.api).href,
    provider_console_url: new URL(`/provider#portal-ticket=${tickets.provider}`, urls.api).href,
    validator_url: urls.validator,
    validator: { hotkey: validator.hotkey },
    central: { hotkey: central.hotkey },
    account: { email: account.email, password: account.password, api_key: account.apiKey },
    provider: { hotkey: provider.hotkey, seed_file: home.providerSeed },
    templates: templates.map(({ id, name }) => ({ id, name })),
    ssh: { private_key_file: home.sshPrivateKey },
    metrics_urls: metricsUrls(metrics, agents.length),
    ...pidsOf(agents),
  };
}

/** Fields of demo.json that change with a restart of an agent. */
function pidsOf(agents: readonly LocalAgent[]): Pick<DemoFile, 'executors' | 'pids'> {
  const pids = agents.flatMap((agent, index) => [
    [`agent-${index + 1}`, agent.process.pid()] as const,
    [`ssh-${index + 1}`, agent.gateway.pid()] as const,
  ]);
  return {
    executors: agents.map((agent) => ({
      id: agent.executorId,
      agent_url: agent.url,
      pid: agent.process.pid(),
    })),
    pids: { main: process.pid, ...Object.fromEntries(pids) },
  };
}

function childrenOf({ process, gateway }: LocalAgent) {
  return [process, gateway];
}
