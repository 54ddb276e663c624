/** The validator's composition root: health loop and gateway over the ports given. */
import { createAgentClient } from '#shared/agent-api/agent-client.ts';
import type { ExecutorToCheck } from '#shared/central-api/validator-routes.ts';
import { type Clock, naiveUtc } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import { createHttpServer } from '#shared/http/server.ts';
import type { Log } from '#shared/log.ts';
import { type Loop, startLoop } from '#shared/loop.ts';
import type { Random } from '#shared/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { createSignedFetch } from '#shared/signing/signed-fetch.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { VERSION } from '#shared/version.ts';
import { createSignedConnect } from '#shared/websocket/connect.ts';
import { createCentralClient } from './central-client.ts';
import type { Policy } from './checks/check.ts';
import { registerGatewayRoutes } from './gateway/gateway.routes.ts';
import { createGatewayAuth } from './gateway/gateway-auth.ts';
import { createSocketRelay } from './gateway/socket-relay.ts';
import { agentUrlOf, createExecutorDirectory } from './health/executor-directory.ts';
import { createHealthService } from './health/health.service.ts';

export type ValidatorOptions = {
  clock: Clock;
  random: Random;
  log: Log;
  signer: Signer;
  centralUrl: string;
  /** The key whose commands the gateway relays. */
  centralHotkey: Hotkey;
  policy: Policy;
  checkIntervalMs: number;
  listIntervalMs: number;
};

export type Validator = ReturnType<typeof createValidator>;

const BODY_LIMIT_BYTES = 1024 * 1024;

/** `start` begins the health loop; `close` ends it and the listener. The caller listens on `server`. */
export function createValidator(options: ValidatorOptions) {
  const { clock, random, log, signer } = options;
  const central = createCentralClient({ baseUrl: options.centralUrl, signer, clock, random });
  const directory = createExecutorDirectory({ central, clock });
  const callerOf = (executor: ExecutorToCheck) => ({
    baseUrl: agentUrlOf(executor),
    audience: executor.id,
    signer,
    clock,
    random,
  });
  const sendTo = (executor: ExecutorToCheck) => createSignedFetch(callerOf(executor));
  const connectTo = (executor: ExecutorToCheck) => createSignedConnect(callerOf(executor));
  const health = createHealthService({
    central,
    directory,
    clientOf: (executor) => createAgentClient({ send: sendTo(executor), clock }),
    clock,
    log,
    policy: options.policy,
    checkIntervalMs: options.checkIntervalMs,
  });

  const auth = createGatewayAuth({
    clock,
    log,
    audience: signer.hotkey,
    central: options.centralHotkey,
  });
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    verifyBody: auth.verifyBody,
  });
  auth.install(server);
  const startedAt = naiveUtc(clock.now());
  server.get('/healthz', async () => ({ status: 'ok' }));
  server.get('/version', async () => ({
    version: VERSION,
    hotkey: signer.hotkey,
    started_at: startedAt,
  }));
  const relaySocket = createSocketRelay(connectTo);
  registerGatewayRoutes(server, { directory, health, sendTo, relaySocket, clock });

  let loop: Loop | null = null;
  return {
    server,
    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: options.listIntervalMs,
        run: () => health.runOnce(),
        onError: (error) => log.warn({ error: messageOf(error) }, 'check pass failed'),
      });
    },
    /** Looks at due executors now instead of at the next pass. */
    wake: () => loop?.wake(),
    async close(): Promise<void> {
      await loop?.stop();
      await server.close();
    },
  };
}
