/** The central API of a local marketplace, which reaches agents through the gateway of its validator. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { GuardedClock } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';
import type { Transport } from '#shared/tls/transport.ts';
import type { Adapters } from '../central/adapters-from-config.ts';
import { type Central, createCentral } from '../central/app.ts';
import { createGatewayAgents } from '../central/platform/adapters/gateway-agents.ts';
import type { CentralPorts } from '../central/platform/central-deps.ts';
import { centralSecret } from '../central/platform/central-home.ts';
import { CONSOLE_FOLDER } from '../central/platform/console/console-files.ts';
import { centralOptionsFrom } from './central-settings.ts';
import type { Home } from './home.ts';
import type { StartOptions } from './options.ts';

export type LocalCentralOptions = {
  home: Home;
  clock: Clock;
  guard: GuardedClock;
  random: Random;
  log: Log;
  signers: { central: Signer; validator: Signer };
  adapters: Adapters;
  /** Source of CENTRAL_* variables. */
  environment: Record<string, string | undefined>;
  options: Pick<StartOptions, 'host'>;
};

const DEMO_BALANCE_UUSD = 1_000_000_000;

export function createLocalCentral(
  { home, clock, guard, random, log, signers, adapters, environment, options }: LocalCentralOptions,
  storage: Required<
    Pick<CentralPorts, 'db' | 'databaseHealth' | 'notifier' | 'auditLedger' | 'metrics'>
  >,
  gateway: { gatewayUrl: string; transport: Transport },
): Promise<Central> {
  const secret = centralSecret(home.centralSecret, random);
  const agents = createGatewayAgents({
    ...gateway,
    gatewayHotkey: signers.validator.hotkey,
    signer: signers.central,
    clock,
    random,
    onPeerTime: guard.heardFrom,
  });
  const ports = {
    db: storage.db,
    databaseHealth: storage.databaseHealth,
    notifier: storage.notifier,
    auditLedger: storage.auditLedger,
    metrics: storage.metrics,
    clock,
    guard,
    random,
    log: log.child({ part: 'central' }),
    agents,
  };
  return createCentral(
    { ...ports, ...adapters.ports, secret },
    {
      validators: [signers.validator.hotkey],
      signupCreditUusd: DEMO_BALANCE_UUSD,
      verifyEmailAtSignup: false,
      ...adapters.options,
      allowsLoopback: isLoopback(options.host),
      consoleFolder: CONSOLE_FOLDER,
      ...centralOptionsFrom(environment),
    },
  );
}
