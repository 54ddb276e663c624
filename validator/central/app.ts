/** The central API's composition root: ports in, one HTTP server with every route out. */
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { registerAccountRoutes } from './accounts/account.routes.ts';
import { createAccounts } from './accounts/account.service.ts';
import { createAccountUpdate } from './accounts/account.update.ts';
import { registerApiKeyRoutes } from './api-keys/api-key.routes.ts';
import { createApiKeys } from './api-keys/api-key.service.ts';
import { createApiKeySecrets } from './auth/api-key-secret.ts';
import { installAuthentication } from './auth/authenticate.ts';
import { createPasswords } from './auth/password.ts';
import { createSessions } from './auth/session.ts';
import { createUserCredentials } from './auth/user-credentials.ts';
import { createValidatorSignatures } from './auth/validator-signature.ts';
import { balanceOf } from './balance/balance.service.ts';
import { registerEventRoutes } from './events/event.routes.ts';
import { createMarket } from './market.ts';
import { describeInterface } from './openapi.ts';
import type { PodClearance } from './pods/pod-clearance.ts';
import type { CentralOptions, CentralPorts } from './ports.ts';
import { registerSshKeyRoutes } from './ssh-keys/ssh-key.routes.ts';
import { createSshKeys } from './ssh-keys/ssh-key.service.ts';
import { registerSystemRoutes } from './system/system.routes.ts';
import { ensureOfficialTemplates } from './templates/official-templates.ts';
import { registerTemplateRoutes } from './templates/template.routes.ts';
import { createTemplates } from './templates/template.service.ts';

const API_PREFIX = '/api';
const PORTAL_PREFIX = '/portal';
const BODY_LIMIT_BYTES = 1024 * 1024;
const DEFAULT_AUDIENCE = 'central';

export type Central = {
  /** Ready to listen or to be injected into. */
  server: HttpServer;
  /** One pass over every pod that is due, for tests that have no periodic work running. */
  syncPods(): Promise<void>;
  /** Removes everybody's pods, and tells how many are left. */
  pods: PodClearance;
  /** Starts the periodic work. */
  start(): void;
  /** Ends streams and jobs, finishes requests, closes the listener. The database stays the caller's. */
  close(): Promise<void>;
};

/** Brings the official templates up to date and registers every route; nothing listens or runs yet. */
export async function createCentral(
  ports: CentralPorts,
  options: CentralOptions,
): Promise<Central> {
  const { db, clock, random, log, secret } = ports;
  const stopping = new AbortController();
  const sessions = createSessions({ clock, random, secret });
  const validators = createValidatorSignatures({
    clock,
    log,
    audience: options.audience ?? DEFAULT_AUDIENCE,
    validators: options.validators,
  });
  const apiKeys = createApiKeys({
    db,
    clock,
    random,
    secrets: createApiKeySecrets({ random, secret }),
    retrievable: options.apiKeysRetrievable ?? true,
  });
  const users = createUserCredentials({ db, sessions, apiKeys });
  const market = createMarket({
    ports,
    options,
    sessions,
    users,
    balanceOf,
    stopping: stopping.signal,
  });

  await market.dropStaleClaims();
  await ensureOfficialTemplates(db, clock);
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    trustedProxies: options.trustedProxies,
    verifyBody: validators.verifyBody,
  });
  installAuthentication(server, { db, sessions, users, validators });
  await describeInterface(server, API_PREFIX);

  const registerAccounts = (api: HttpServer) => {
    const passwords = createPasswords({ random });
    const account = { db, clock, random, options, sessions, passwords, apiKeys, balanceOf };
    registerSystemRoutes(api, { clock, stopping: stopping.signal });
    registerAccountRoutes(api, createAccounts(account), createAccountUpdate(account));
    registerApiKeyRoutes(api, apiKeys);
    registerSshKeyRoutes(api, createSshKeys({ db, clock, random }));
    registerTemplateRoutes(api, createTemplates({ db, clock, random }));
    registerEventRoutes(api, { db });
  };
  await registerBelow(server, API_PREFIX, [registerAccounts, market.registerApi]);
  await registerBelow(server, PORTAL_PREFIX, [market.registerPortal]);
  await registerBelow(server, '/', [market.registerOrigin]);
  await server.ready();

  let jobs: ReturnType<typeof market.startJobs> | null = null;
  return {
    server,
    syncPods: market.syncOnce,
    pods: market.clearance,
    start() {
      jobs ??= market.startJobs();
    },
    async close() {
      stopping.abort();
      await jobs?.stop();
      await server.close();
    },
  };
}

async function registerBelow(
  server: HttpServer,
  prefix: string,
  groups: readonly ((scope: HttpServer) => void)[],
): Promise<void> {
  await server.register(
    async (scope) => {
      for (const register of groups) register(scope);
    },
    { prefix },
  );
}
