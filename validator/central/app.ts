/** The central API's composition root: ports in, one HTTP server with every route out. */
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import type { Liveness } from '#shared/runtime/liveness.ts';
import { runEach } from '#shared/runtime/loop.ts';
import { isPostgres } from '../database/engine.ts';
import { createAccountsModule } from './accounts/accounts.ts';
import { createCredentials } from './accounts/credentials.ts';
import { forgetBackups } from './backups/backup.service.ts';
import { createBackupWork } from './backups/backup-work.ts';
import { openEmbeddedBackups } from './backups/storage/backup-storage.ts';
import { listeningOrigin } from './backups/storage/listening-origin.ts';
import { registerStreams } from './delivery/delivery.ts';
import { registerEventRoutes } from './delivery/events/event.routes.ts';
import { createMails } from './delivery/mail/mail.service.ts';
import { createMessaging } from './delivery/messaging.ts';
import { deleteMarketData, marketForAccounts } from './market/account-data.ts';
import { createAccountPods } from './market/cut-off/cut-off.ts';
import { createMarket } from './market/market.ts';
import { requireAnyOwnPod } from './market/pods/pod-access.ts';
import type { PodCleanup } from './market/pods/pod-removal.ts';
import { ensureOfficialTemplates } from './market/templates/official-templates.ts';
import { registerTemplateRoutes } from './market/templates/template.routes.ts';
import { createTemplates } from './market/templates/template.service.ts';
import { createValidatorAccounts } from './market/validators/validator-account.service.ts';
import { createBilling, moneyForAccounts } from './money/billing.ts';
import type { CentralOptions, CentralPorts } from './platform/central-deps.ts';
import { createNotifier, withNotifier } from './platform/database/notifier.ts';
import { installCors } from './platform/edge/cors.ts';
import { errorProfileOf } from './platform/edge/error-profiles.ts';
import {
  installBodyLimits,
  installSecurityHeaders,
  refuseUnstorable,
} from './platform/edge/request-hooks.ts';
import { createIdempotency } from './platform/idempotency/idempotency.ts';
import { installKeyGate } from './platform/idempotency/once.ts';
import { startBacklog } from './platform/metrics/backlog.job.ts';
import { describeInterface } from './platform/openapi/openapi.ts';
import { createProcesses } from './platform/processes.ts';
import { DEFAULT_LIMITS } from './platform/rate-limits/policies.ts';
import { createRateLimits } from './platform/rate-limits/rate-limit.ts';
import { createRetention } from './platform/schedule/retention.ts';
import { createSchedule } from './platform/schedule/schedule.ts';
import {
  registerPortalDescription,
  registerSystemRoutes,
} from './platform/system/system.routes.ts';
import { registerSharedConfig } from './providers/portal.routes.ts';
import { registerPortal } from './providers/portal.ts';
import { payoutKeyOf } from './providers/provider.service.ts';
import { createProviderTokens } from './providers/provider-token.service.ts';
import { subscriptions } from './providers/subscriptions.ts';

const API_PREFIX = '/api';
const PORTAL_PREFIX = '/portal';
const BODY_LIMIT_BYTES = 1024 * 1024;

export type Central = {
  /** Ready to listen or to be injected into. */
  server: HttpServer;
  /** Everything that is due, and one pass over every pod, for tests that have no periodic work running. */
  syncPods(): Promise<void>;
  /** Everything that is due, without the pass. */
  runDue(): Promise<void>;
  /** One tick of the meter, for the same. */
  meterPods(): Promise<void>;
  /** One look at the schedules of backups and one clean-up, for the same. */
  tendBackups(): Promise<void>;
  /** One pass over the mails that are due, over the webhooks, and one removal of what ran out, for the same. */
  sendMails(): Promise<void>;
  sendWebhooks(): Promise<void>;
  /** One pass over charges in flight, and one over open payouts, for the same. */
  chargeTopUps(): Promise<void>;
  payOut(): Promise<void>;
  sweepAccounts(): Promise<void>;
  /** Counts an account's address as proven, for the operator's own accounts. */
  verifyAccount(email: string): Promise<void>;
  /** Removes everybody's pods, and tells how many are left. */
  pods: PodCleanup;
  /** Starts the periodic work. */
  start(): void;
  /** How the periodic work and the database are, once started. */
  vitals(): Liveness;
  /** Ends streams and jobs, finishes requests, closes the listener and the way to the mail server. The database stays the caller's. */
  close(): Promise<void>;
};

/** Brings the official templates up to date and registers every route; nothing listens or runs yet. */
export async function createCentral(
  given: CentralPorts,
  options: CentralOptions,
): Promise<Central> {
  const { clock, random, log, secret, backupFolder = null } = given;
  const { notifier = createNotifier(clock) } = given;
  const db = withNotifier(given.db, notifier);
  const stopping = new AbortController();
  const backups =
    backupFolder === null
      ? null
      : await openEmbeddedBackups({
          ...{ place: backupFolder, secret, clock, random, log, stopping: stopping.signal },
          isAlone: !notifier.isShared,
          origin: () => options.publicOrigin ?? listeningOrigin(server),
        });
  const ports = { ...given, db, backupStorage: given.backupStorage ?? backups?.storage ?? null };
  const credentials = createCredentials(ports, options, stopping.signal);
  const { sessions, apiKeys, passwords, tickets } = credentials;
  const isSent = (given.mailer ?? null) !== null;
  const mails = createMails({ db, clock, random, secret, isSent });
  const providerTokens = createProviderTokens({ db, clock, random });
  const deps = {
    passwords,
    providerTokens,
    ports,
    options,
    sessions,
    credentials: credentials.watch,
    tickets,
    notifier,
    mails,
    wakeMail: () => messaging.wakeMail(),
    stopping: stopping.signal,
  };
  const processes = createProcesses({
    db,
    clock,
    log,
    bootId: random.uuid(),
    shared: isPostgres(db),
  });
  const idempotency = createIdempotency({ db, clock, random, processes });
  const billing = createBilling(deps, {
    pods: createAccountPods({ clock, random }),
    payoutKeyOf,
    requirePodOf: requireAnyOwnPod,
  });
  const podBackups = createBackupWork(deps, {
    processes,
    wake: (executorId) => market.wake(executorId),
  });
  const market = createMarket(deps, {
    processes,
    idempotency,
    subscriptions,
    backups: podBackups,
    afterSpend: billing.afterSpendOf,
  });
  const validatorAccounts = createValidatorAccounts({ clock, validators: options.validators });
  const messaging = createMessaging(deps);
  const accounts = createAccountsModule({
    ...deps,
    apiKeys,
    above: { ...moneyForAccounts, ...marketForAccounts, validators: validatorAccounts },
    deleteData: [
      messaging.deleteAccountData,
      billing.deleteAccountData,
      (tx, accountId) => forgetBackups(tx, accountId, clock.now()),
      (tx, accountId) => deleteMarketData(tx, accountId, clock.now()),
    ],
  });

  const retention = createRetention({
    db,
    sweeps: {
      ...market.sweeps,
      'idempotency-keys': idempotency.sweep,
      'backup-logs': podBackups.sweep,
      ...messaging.sweeps,
      ...accounts.sweeps,
      ...credentials.sweeps,
    },
  });
  const schedule = createSchedule({
    ...{ db, clock, random, log, notifier },
    handlers: { ...market.dueHandlers, ...billing.dueHandlers, retention: retention.handler },
    begin: retention.begin,
  });

  await market.prepare();
  await processes.register();
  await ensureOfficialTemplates(db, clock);
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    trustedProxies: options.trustedProxies,
    profileOf: errorProfileOf,
    verifyBody: credentials.verifyBody,
  });
  const limits = createRateLimits(options.rateLimits ?? DEFAULT_LIMITS, { clock });
  given.metrics?.watch(server);
  installSecurityHeaders(server);
  installCors(server, options.corsOrigins ?? []);
  limits.beforeAuthentication(server);
  credentials.install(server, {
    providerTokens,
    validatorOf: (accountId) => validatorAccounts.hotkeyOf(db, accountId),
  });
  refuseUnstorable(server);
  limits.afterAuthentication(server);
  installBodyLimits(server);
  installKeyGate(server);
  await describeInterface(server, {
    ...{ prefix: API_PREFIX, title: 'Podwright', decorator: 'swagger' },
  });
  await describeInterface(server, {
    ...{ prefix: PORTAL_PREFIX, title: 'Podwright provider portal' },
    decorator: 'portalDescription',
  });

  const registerOthers = (api: HttpServer) => {
    registerSystemRoutes(api, { clock, hotkey: ports.agents.hotkey, stopping: stopping.signal });
    registerTemplateRoutes(api, createTemplates({ db, clock, random }));
    registerEventRoutes(api, { db });
  };
  await registerBelow(server, API_PREFIX, [
    registerOthers,
    accounts.registerApi,
    (api) => messaging.registerApi(api, idempotency),
    market.registerApi,
    (api) => podBackups.register(api, { clock, idempotency }),
    (api) => registerStreams(api, deps),
    (api) => billing.registerApi(api, idempotency),
    registerSharedConfig,
  ]);
  await registerBelow(server, PORTAL_PREFIX, [
    (portal) => registerPortal(portal, deps, market.portal),
    billing.registerPortal,
    registerPortalDescription,
  ]);
  await registerBelow(server, '/', [
    registerSharedConfig,
    messaging.registerOrigin,
    billing.registerOrigin,
    async (origin) => backups?.register(origin),
  ]);
  await server.ready();

  let jobs: { stop(): Promise<void> }[] = [];
  return {
    server,
    runDue: schedule.runDue,
    async syncPods() {
      await schedule.runDue();
      await market.syncOnce();
    },
    meterPods: billing.meterPods,
    tendBackups: () => runEach([podBackups.runOnce, market.cleanVolumes]),
    sendMails: messaging.sendMails,
    chargeTopUps: billing.chargeTopUps,
    payOut: billing.payOut,
    sendWebhooks: messaging.sendWebhooks,
    sweepAccounts: () => runEach([retention.runOnce, messaging.sweepUploads]),
    verifyAccount: accounts.verifyAccount,
    pods: market.podCleanup,
    start() {
      if (jobs.length > 0) return;
      schedule.start();
      processes.start();
      podBackups.start();
      const others = [market, messaging, billing].map((module) => module.startJobs());
      jobs = [schedule, podBackups, ...others];
      if (backups !== null) jobs.push(backups.startJobs());
      if (given.metrics) jobs.push(startBacklog(given.metrics, { ...given, backups }));
    },
    vitals() {
      return {
        heartbeatAgeMs: Math.max(market.sinceSyncMs(), schedule.sinceLookMs()),
        storeProblem: processes.problemOfStore(),
        engine: 'unused',
      };
    },
    async close() {
      stopping.abort();
      // Together: from here on nothing new is taken, while what is in flight and the jobs come to their end.
      await Promise.all([server.close(), ...jobs.map((job) => job.stop())]);
      await ports.mailer?.close();
      await processes.leave();
    },
  };
}

async function registerBelow(
  server: HttpServer,
  prefix: string,
  groups: readonly ((scope: HttpServer) => void | Promise<void>)[],
): Promise<void> {
  await server.register(
    async (scope) => {
      for (const register of groups) await register(scope);
    },
    { prefix },
  );
}
