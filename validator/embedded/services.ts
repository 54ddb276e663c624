/** The central API and the validator of a local marketplace: one process, talking over loopback all the same. */
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { createValidator } from '../app.ts';
import { createGatewayAgents } from '../central/adapters/gateway-agents.ts';
import { type Central, createCentral } from '../central/app.ts';
import { openCentralDatabase } from '../central/db/database.ts';
import type { Database } from '../central/db/tables.ts';
import { type Home, readOrCreateFile } from './home.ts';
import type { StartOptions } from './options.ts';

export type Services = {
  central: Central;
  /** Ends both, in the direction of the requests, so that each closes with nobody left to call it. */
  close(): Promise<void>;
};

export type ServicesOptions = {
  options: StartOptions;
  home: Home;
  clock: Clock;
  random: Random;
  log: Log;
  signers: { central: Signer; validator: Signer };
};

const SECRET_BYTES = 32;
const DEMO_BALANCE_UUSD = 1_000_000_000;
const CHECK_INTERVAL_MS = 60_000;
const LIST_INTERVAL_MS = 1_000;

/** Base addresses of what `npm start` serves. */
export function urlsOf(options: StartOptions) {
  const origin = (port: number) => `http://${options.host}:${port}`;
  return {
    api: `${origin(options.port)}/api`,
    portal: `${origin(options.port)}/portal`,
    validator: origin(options['validator-port']),
  };
}

/** Central first: the validator's first pass asks it for the executors. Both listen and work when this resolves. */
export async function startServices(parts: ServicesOptions): Promise<Services> {
  const { options, home, signers } = parts;
  const urls = urlsOf(options);
  const database = await openCentralDatabase(home.centralDatabase);
  const central = await composeCentral(parts, database, urls.validator);
  const validator = createValidator({
    clock: parts.clock,
    random: parts.random,
    log: parts.log.child({ part: 'validator' }),
    signer: signers.validator,
    centralUrl: urls.api,
    centralHotkey: signers.central.hotkey,
    policy: { acceptSimulated: true },
    checkIntervalMs: CHECK_INTERVAL_MS,
    listIntervalMs: LIST_INTERVAL_MS,
  });
  await central.server.listen({ host: options.host, port: options.port });
  await validator.server.listen({ host: options.host, port: options['validator-port'] });
  central.start();
  validator.start();
  return {
    central,
    async close() {
      await central.close();
      await validator.close();
      await database.destroy();
    },
  };
}

function composeCentral(
  { home, clock, random, log, signers }: ServicesOptions,
  db: Database,
  gatewayUrl: string,
): Promise<Central> {
  const secret = readOrCreateFile(home.centralSecret, () => random.bytes(SECRET_BYTES));
  const agents = createGatewayAgents({
    gatewayUrl,
    gatewayHotkey: signers.validator.hotkey,
    signer: signers.central,
    clock,
    random,
  });
  const ports = { db, clock, random, log: log.child({ part: 'central' }), agents };
  return createCentral(
    { ...ports, secret: new Uint8Array(secret) },
    {
      validators: [signers.validator.hotkey],
      signupCreditUusd: DEMO_BALANCE_UUSD,
      verifyEmailAtSignup: true,
      trustedProxies: [],
    },
  );
}
