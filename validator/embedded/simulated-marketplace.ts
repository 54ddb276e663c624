/** `npm start -- --simulate`: a marketplace of models, behind the real API and console, and its demo data. */
import { z } from 'zod';
import { callJson } from '#shared/http/json-call.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import { createLog } from '#shared/runtime/log.ts';
import type { Progress } from '#shared/runtime/progress.ts';
import type { Random } from '#shared/runtime/random.ts';
import { changeOperatorRole } from '../central/accounts/account/operator-role.service.ts';
import { CONSOLE_FOLDER } from '../central/platform/console/console-files.ts';
import { type LiveMarket, startLiveMarket } from '../simulate/live/live-market.ts';
import { DEFAULT_SCENARIO, readScenario, type Scenario } from '../simulate/scenarios/scenario.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../weights/weight-policy.ts';
import { createCappedFile } from './capped-file.ts';
import { ensureDemoAccount } from './demo-account.ts';
import { logInProvider } from './demo-provider.ts';
import { type Home, writePrivateFile } from './home.ts';
import type { StartOptions } from './options.ts';
import { type SimulatedDemo, simulatedReadyText } from './simulated-text.ts';

export type SimulatedParts = {
  options: StartOptions;
  home: Home;
  random: Random;
  progress: Progress;
  /** Aborts the start: everything stops again, and the start rejects. */
  signal: AbortSignal;
};

export type SimulatedMarketplace = {
  /** Printed when everything responds. */
  readyText: string;
  /** Rejects with the error that ended the simulation. */
  ended: Promise<void>;
  stop(): Promise<void>;
};

const SECOND_MS = 1_000;
const NAMES = { host: '--host', port: '--port' };
/** Name of the simulated provider to whose pages the printed link leads. */
const PROVIDER = 'provider-1';
const Templates = z.array(z.object({ id: z.string(), name: z.string() }));

/** Throws ConfigError for a scenario that cannot be read. */
export function scenarioOf({ scenario }: Pick<StartOptions, 'scenario'>): Scenario {
  return readScenario(scenario ?? DEFAULT_SCENARIO);
}

/** Creates the market, and the accounts of the printed links. All data ends with the process. */
export async function startSimulatedMarketplace(
  parts: SimulatedParts,
): Promise<SimulatedMarketplace> {
  const { options, home, progress, signal } = parts;
  const { providers, renters, seed, host, port } = options;
  progress.step(`creating ${providers} providers and ${renters} renters`);
  const market = await startLiveMarket({
    scenario: scenarioOf(options),
    seed,
    providers,
    renters,
    weightPolicy: readWeightPolicy(DEFAULT_POLICY_FILE),
    listen: { host, port },
    names: NAMES,
    consoleFolder: CONSOLE_FOLDER,
    log: createLog({ name: 'simulation', level: 'warn' }, createCappedFile(home.log('simulation'))),
  });
  try {
    signal.throwIfAborted();
    const demo = await createDemo(parts, market);
    writePrivateFile(home.demoFile, `${JSON.stringify(demo, null, 2)}\n`);
    signal.throwIfAborted();
    return {
      readyText: simulatedReadyText(demo, { home, options }),
      ended: market.ended,
      stop: market.stop,
    };
  } catch (error) {
    await market.stop();
    throw error;
  }
}

/** Signs up an account with the operator's role, and creates the links that log a browser in. */
async function createDemo(
  { options, home, random }: SimulatedParts,
  { world }: LiveMarket,
): Promise<SimulatedDemo> {
  const { clock, db } = world;
  const origin = `http://${hostAndPort(options.host, options.port)}`;
  const [baseUrl, portalUrl] = [`${origin}/api`, `${origin}/portal`];
  const { ticket, apiKey, ...account } = await ensureDemoAccount(baseUrl, home, random);
  const role = {
    email: account.email,
    isOperator: true,
    reason: 'account of the simulated marketplace',
    operator: 'npm start',
  };
  await db.transaction().execute((tx) => changeOperatorRole(tx, { clock }, role));
  const provider = await world.signerOf(PROVIDER);
  // The provider has logged in at the present time, and a time is accepted once.
  const later = { ...clock, now: () => clock.now() + SECOND_MS };
  const portal = await logInProvider(portalUrl, provider, later);
  const portalTicket = await portal.createTicket();
  return {
    base_url: baseUrl,
    portal_url: portalUrl,
    console_url: new URL(`/operator/clock#ticket=${ticket}`, origin).href,
    provider_console_url: new URL(`/provider#portal-ticket=${portalTicket}`, origin).href,
    account: { ...account, api_key: apiKey },
    provider: { hotkey: provider.hotkey },
    templates: await callJson(Templates, { method: 'GET', url: `${baseUrl}/templates` }),
    pids: { main: process.pid },
  };
}
