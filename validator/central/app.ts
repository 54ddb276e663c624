/** The central API's composition root: receives the ports and returns one HTTP server with every route. */
import {
  clockProbe,
  createReadiness,
  type ReadinessCheck,
  registerLiveness,
  registerReadiness,
  withoutDetails,
} from '#shared/api/readiness.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { createGuardedClock } from '#shared/runtime/guarded-clock.ts';
import type { Liveness } from '#shared/runtime/liveness.ts';
import { runEach } from '#shared/runtime/loop.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { databaseProbes, INTACT_DATABASE } from '../database/database-watch.ts';
import { createAccountsModule } from './accounts/accounts.ts';
import { deriveKey } from './accounts/auth/derived-key.ts';
import { createCredentials } from './accounts/credentials.ts';
import { createBackups } from './backups/backups.ts';
import { listeningOrigin, openEmbeddedBackups } from './backups/storage/backup-storage.ts';
import { createDelivery } from './delivery/delivery.ts';
import { marketForAccounts } from './market/account-data.ts';
import { createAccountPods } from './market/cut-off/cut-off.ts';
import { huidOf } from './market/executors/executor-response.ts';
import { createMarket } from './market/market.ts';
import { findAnyPod, requireAnyOwnPod, requireOwnPod } from './market/pods/pod-access.ts';
import type { PodCleanup } from './market/pods/pod-removal.ts';
import { createValidatorAccounts } from './market/validators/validator-account.service.ts';
import { createBilling, moneyForAccounts } from './money/billing.ts';
import { auditLedger } from './money/ledger/audit.service.ts';
import { createLedgerProofs } from './money/ledger/ledger-proof.service.ts';
import { keyBudgets } from './money/metering/key-budget-change.ts';
import { registerOperator } from './operator/operator.ts';
import {
  API_PREFIX,
  createApiServer,
  PORTAL_PREFIX,
  registerBelow,
} from './platform/api-server.ts';
import type { CentralOptions, CentralPorts } from './platform/central-deps.ts';
import { registerConsole, serveConsolePages } from './platform/console/console.routes.ts';
import { requireSchema } from './platform/database/database.ts';
import { startBacklog } from './platform/metrics/backlog.job.ts';
import { registerViewer } from './platform/openapi/viewer.routes.ts';
import { createPlatform } from './platform/platform.ts';
import { registerStartPages } from './platform/system/start-page.routes.ts';
import {
  registerPortalDescription,
  registerSystemRoutes,
} from './platform/system/system.routes.ts';
import { registerSharedConfig } from './providers/machine.routes.ts';
import { registerPortal } from './providers/portal.ts';
import { payoutKeyOf } from './providers/provider.service.ts';
import { subscriptions } from './providers/provider-profile.service.ts';
import { createProviderTokens } from './providers/provider-token.service.ts';

/** Options of the routes of load balancers. */
const PROBE = { auth: 'none', limit: 'exempt' } as const;

/** Functions that run one pass are for tests, which call them instead of starting the jobs with `start`. */
export type Central = {
  /** Server that can listen, or receive requests that tests inject. */
  server: HttpServer;
  /** Runs one pass of the schedule, then syncs every pod once. */
  syncPods(): Promise<void>;
  /** Compares the pods of nodes without pods in the database. */
  surveyPods(): Promise<void>;
  /** Collects the samples of every executor that is due. */
  collectMetrics(): Promise<void>;
  /** Runs one pass of the schedule. */
  runDue(): Promise<void>;
  /** Runs one pass of metering. */
  meterPods(): Promise<void>;
  /** Runs one pass over the backup schedules, and one removal of expired backups. */
  tendBackups(): Promise<void>;
  /** Runs one pass over the mails that are due. */
  sendMails(): Promise<void>;
  /** Runs one pass over the webhooks that have events to send. */
  sendWebhooks(): Promise<void>;
  /** Runs one pass over the charges in flight. */
  chargeTopUps(): Promise<void>;
  /** Applies the feed of deposits once. */
  pollCollateral(): Promise<void>;
  /** Runs one pass over open payouts. */
  payOut(): Promise<void>;
  /** Removes expired rows and unused uploads once. */
  sweepAccounts(): Promise<void>;
  /** Resolves when all mails that were requested so far are stored. */
  settleMailRequests(): Promise<void>;
  /** Marks an account's address as verified, for the operator's own accounts. */
  verifyAccount(email: string): Promise<void>;
  /** Removes all pods of the marketplace. */
  pods: PodCleanup;
  /** Starts the periodic work. */
  start(): void;
  /** Returns the state of the periodic work and the database. Call it after `start`. */
  vitals(): Liveness;
  /** Probes what requests need. */
  readiness: ReadinessCheck;
  /**
   * Makes `/readyz` answer 503 within a second, so that load balancers choose other processes. Requests are still
   * served, and jobs still run, until `close`.
   */
  drain(): void;
  /**
   * Ends streams and jobs, finishes requests, closes the listener and the connection to the mail server. The caller
   * closes the database.
   */
  close(): Promise<void>;
};

const DAMAGED: Liveness = { heartbeatAgeMs: 0, storeProblem: null, engine: 'unused' };

/** Updates the official templates and registers every route. Nothing listens or runs yet. */
export async function createCentral(
  given: CentralPorts,
  options: CentralOptions,
): Promise<Central> {
  const { clock, random, log, secret, backupFolder = null, installLocal = null } = given;
  const guard = given.guard ?? createGuardedClock({ clock, log });
  const sealing = createSealing({ key: deriveKey(secret, 'environment-sealing'), random });
  const platform = createPlatform(given, {
    trust: guard,
    sealing,
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
  });
  const { databaseHealth: health = INTACT_DATABASE } = given;
  const { db, notifier, processes, idempotency } = platform;
  const stoppingController = new AbortController();
  const stopping = stoppingController.signal;
  const storage =
    backupFolder === null
      ? null
      : await openEmbeddedBackups({
          place: backupFolder,
          secret,
          clock,
          random,
          log,
          stopping,
          isAlone: !notifier.isShared,
          trust: guard,
          origin: () => options.publicOrigin ?? listeningOrigin(server),
        });
  const ports = { ...given, db, backupStorage: given.backupStorage ?? storage?.storage ?? null };
  const base = { ports, options, notifier, stopping, trust: guard };
  const credentials = createCredentials(ports, options, stopping, keyBudgets);
  const { sessions, logInTickets, passwords, apiKeys, tickets } = credentials;
  const { auditLedger: audit = () => db.transaction().execute(auditLedger) } = given;
  const providerTokens = createProviderTokens({ db, clock, random });
  const delivery = createDelivery(
    { ...base, tickets, credentials: credentials.watch },
    { findAnyPod, requireOwnPod, requireAnyOwnPod },
  );
  const { mails, wakeMail } = delivery;
  const deps = { ...base, mails, wakeMail };
  const billing = createBilling(deps, {
    pods: createAccountPods({ clock, random }),
    payoutKeyOf,
    requirePodOf: requireAnyOwnPod,
    nodeNameOf: huidOf,
  });
  const backups = createBackups(deps, {
    processes,
    wake: (executorId) => market.wake(executorId),
  });
  const { afterSpendOf: afterSpend, reportRefunds } = billing;
  const market = createMarket(deps, {
    processes,
    idempotency,
    subscriptions,
    backups,
    afterSpend,
    reportRefunds,
  });
  const validatorAccounts = createValidatorAccounts({ clock, validators: options.validators });
  const accounts = createAccountsModule({
    ...deps,
    sessions,
    logInTickets,
    passwords,
    apiKeys,
    onboarding: billing.onboarding,
    idempotency,
    above: { ...moneyForAccounts(clock), ...marketForAccounts, validators: validatorAccounts },
    deleteData: [delivery, billing, backups, market].map((module) => module.deleteAccountData),
  });
  const schedule = platform.createSchedule({
    handlers: { ...market.dueHandlers, ...billing.dueHandlers },
    sweeps: {
      ...credentials.sweeps,
      ...accounts.sweeps,
      ...delivery.sweeps,
      ...market.sweeps,
      ...backups.sweeps,
    },
  });

  given.metrics?.watchClock(guard);
  guard.beforeStep(market.suspendMeters);
  await platform.prepare();
  await market.prepare();
  await processes.register();
  const server = await createApiServer({
    ports,
    options,
    processes,
    verifyBody: credentials.verifyBody,
    authenticate: (api) =>
      credentials.install(api, {
        providerTokens,
        validatorOf: (accountId) => validatorAccounts.hotkeyOf(db, accountId),
      }),
  });
  installLocal?.(server, clock);
  const { consoleFolder = null } = options;
  if (consoleFolder !== null) serveConsolePages(server, consoleFolder);
  await registerBelow(server, API_PREFIX, [
    (api) => {
      const { webhookTargets = 'public' } = options;
      registerSystemRoutes(api, { clock, agents: ports.agents, stopping, webhookTargets });
    },
    accounts.registerApi,
    (api) => delivery.registerApi(api, idempotency),
    market.registerApi,
    (api) => backups.register(api, { clock, idempotency }),
    (api) => billing.registerApi(api, idempotency),
    (api) => {
      const views = { ...moneyForAccounts(clock), validators: validatorAccounts };
      const { refunds } = billing;
      const proofs = createLedgerProofs({ db, clock, log, processes, stopping, audit });
      const { unknownPods } = market;
      registerOperator(api, base, { idempotency, refunds, proofs, views, guard, unknownPods });
    },
    registerSharedConfig,
  ]);
  await registerBelow(server, PORTAL_PREFIX, [
    (portal) =>
      registerPortal(
        portal,
        { ...base, sessions, logInTickets, passwords, providerTokens },
        market.portal,
      ),
    billing.registerPortal,
    registerPortalDescription,
  ]);
  let isDraining = false;
  const readiness = createReadiness(clock, {
    ...databaseProbes(health, () => requireSchema(db)),
    clock: clockProbe(guard),
    process: {
      required: true,
      async check() {
        if (isDraining) throw new Error('the process is stopping');
        return 'running';
      },
    },
  });
  await registerBelow(server, '/', [
    (origin) => {
      registerLiveness(origin, PROBE);
      registerReadiness(origin, withoutDetails(readiness), PROBE);
    },
    registerSharedConfig,
    registerViewer,
    registerStartPages,
    (origin) => (consoleFolder === null ? undefined : registerConsole(origin, consoleFolder)),
    delivery.registerOrigin,
    (origin) => billing.registerOrigin(origin, accounts.completeOnboarding),
    async (origin) => storage?.register(origin),
  ]);
  await server.ready();

  let jobs: { stop(): Promise<void> }[] = [];
  const stopJobs = () => Promise.all(jobs.map((job) => job.stop()));
  // Damage of the database stops the jobs: they must not charge, remove or send anything because of wrong rows, while
  // renters cannot delete their pods.
  health.damage.onRecord(() => void stopJobs().then(() => processes.leave()));
  return {
    server,
    readiness,
    drain() {
      isDraining = true;
    },
    runDue: schedule.runDue,
    async syncPods() {
      await schedule.runDue();
      await market.syncOnce();
    },
    surveyPods: market.surveyPods,
    collectMetrics: market.collectMetrics,
    meterPods: billing.meterPods,
    tendBackups: () => runEach([backups.runOnce, market.cleanVolumes]),
    sendMails: delivery.sendMails,
    sendWebhooks: delivery.sendWebhooks,
    chargeTopUps: billing.chargeTopUps,
    pollCollateral: market.pollCollateral,
    payOut: billing.payOut,
    sweepAccounts: () => runEach([schedule.removeOldRows, delivery.sweepUploads]),
    settleMailRequests: accounts.settleMailRequests,
    verifyAccount: accounts.verifyAccount,
    pods: market.podCleanup,
    start() {
      if (jobs.length > 0 || health.damage.problem() !== null) return;
      schedule.start();
      processes.start();
      backups.start();
      const modules = [market, delivery, billing].map((module) => module.startJobs());
      jobs = [schedule, backups, ...modules];
      if (storage !== null) jobs.push(storage.startJobs());
      if (given.metrics)
        jobs.push(startBacklog(given.metrics, { db, clock, log, backups: storage }));
    },
    vitals() {
      // A restart would not repair a damaged database.
      if (health.damage.problem() !== null) return DAMAGED;
      return {
        heartbeatAgeMs: Math.max(market.sinceSyncMs(), schedule.sincePollMs()),
        storeProblem: processes.problemOfStore(),
        engine: 'unused',
      };
    },
    async close() {
      stoppingController.abort();
      // Jobs and the server close at the same time: no new requests are accepted while current requests and jobs end.
      await Promise.all([server.close(), stopJobs()]);
      await accounts.settleMailRequests();
      await ports.mailer?.close();
      await processes.leave();
    },
  };
}
