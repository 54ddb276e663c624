/** The central API's composition root: ports in, one HTTP server with every route out. */
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { registerAccountRoutes } from './accounts/account.routes.ts';
import { type BalanceOf, createAccounts, postedBalance } from './accounts/account.service.ts';
import { createAccountUpdate } from './accounts/account.update.ts';
import { registerApiKeyRoutes } from './api-keys/api-key.routes.ts';
import { createApiKeys } from './api-keys/api-key.service.ts';
import { createApiKeySecrets } from './auth/api-key-secret.ts';
import { installAuthentication } from './auth/authenticate.ts';
import { createPasswords } from './auth/password.ts';
import { createSessions } from './auth/session.ts';
import { createUserCredentials } from './auth/user-credentials.ts';
import { createValidatorSignatures } from './auth/validator-signature.ts';
import { registerEventRoutes } from './events/event.routes.ts';
import { describeInterface } from './openapi.ts';
import type { CentralDeps, CentralOptions, CentralPorts, RegisterRoutes } from './ports.ts';
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

// ---- The market's half: executors, rentals, pods, providers, validators, balance. ----

/** What an account has and owes; the balance concept's function once it is there. */
const balanceOf: BalanceOf = postedBalance;
/** Registered below /api, below /portal, and at the origin. */
const MARKET: { api: RegisterRoutes[]; portal: RegisterRoutes[]; origin: RegisterRoutes[] } = {
  api: [],
  portal: [],
  origin: [],
};
/** Started by `start`, stopped by `close`. */
const JOBS: StartJob[] = [];

// --------------------------------------------------------------------------------------

/** Starts one loop and returns what stops it. */
export type StartJob = (deps: CentralDeps) => { stop(): Promise<void> };

export type Central = {
  /** Ready to listen or to be injected into. */
  server: HttpServer;
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
  const deps: CentralDeps = { ports, options, sessions, balanceOf, stopping: stopping.signal };

  await ensureOfficialTemplates(db, clock);
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    trustedProxies: options.trustedProxies,
    verifyBody: validators.verifyBody,
  });
  const users = createUserCredentials({ db, sessions, apiKeys });
  installAuthentication(server, { db, sessions, users, validators });
  await describeInterface(server, API_PREFIX);

  const registerAccounts: RegisterRoutes = (api) => {
    const passwords = createPasswords({ random });
    const account = { db, clock, random, options, sessions, passwords, apiKeys, balanceOf };
    registerSystemRoutes(api, { clock, stopping: stopping.signal });
    registerAccountRoutes(api, createAccounts(account), createAccountUpdate(account));
    registerApiKeyRoutes(api, apiKeys);
    registerSshKeyRoutes(api, createSshKeys({ db, clock, random }));
    registerTemplateRoutes(api, createTemplates({ db, clock, random }));
    registerEventRoutes(api, { db });
  };
  await registerBelow(server, API_PREFIX, [registerAccounts, ...MARKET.api], deps);
  await registerBelow(server, PORTAL_PREFIX, MARKET.portal, deps);
  await registerBelow(server, '/', MARKET.origin, deps);
  await server.ready();

  let jobs: ReturnType<StartJob>[] = [];
  return {
    server,
    start() {
      jobs = JOBS.map((startJob) => startJob(deps));
    },
    async close() {
      stopping.abort();
      await Promise.all(jobs.map((job) => job.stop()));
      await server.close();
    },
  };
}

async function registerBelow(
  server: HttpServer,
  prefix: string,
  groups: readonly RegisterRoutes[],
  deps: CentralDeps,
): Promise<void> {
  await server.register(
    async (scope) => {
      for (const register of groups) register(scope, deps);
    },
    { prefix },
  );
}
