/** Composes the market: nodes, rentals, pods, volumes, machine requests, notices and validators. */
import type { HttpServer } from '#shared/http/server.ts';
import type { MailDeps } from '../delivery/delivery.ts';
import type { ReportRefunds } from '../money/metering/report-refund.ts';
import type { Db, Pod } from '../platform/database/tables.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { Processes } from '../platform/processes.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import type { DueHandlers } from '../platform/schedule/schedule.ts';
import { annotationsOf, deleteMarketData } from './account-data.ts';
import { registerBookmarks } from './bookmarks/bookmark.routes.ts';
import { createCollateralJob } from './collateral/collateral.job.ts';
import { cutOffHandlers } from './cut-off/cut-off.ts';
import { idleHandlers } from './cut-off/idle-shutdown.ts';
import { keyBudgetHandlers } from './cut-off/key-budget.ts';
import { createExecutorParts } from './executors/executors.ts';
import { registerFeedbackRoutes } from './feedback/feedback.routes.ts';
import { createMachineRequestParts } from './machine-requests/machine-requests.ts';
import type { Subscriptions } from './machine-requests/request-notifications.ts';
import { createMetricHistoryParts } from './metric-history/metric-histories.ts';
import { createNoticeParts } from './notices/notices.ts';
import { createReportParts } from './pod-reports/reports.ts';
import { launchHistoryFor } from './pods/launch-eta.ts';
import { createPodParts, type PodPartsDeps } from './pods/pods.ts';
import type { RentDeps } from './rentals/rental.service.ts';
import { registerRentals } from './rentals/rentals.ts';
import { registerSearch } from './search/search.routes.ts';
import { registerSupportChannels } from './support-channels/support-channel.routes.ts';
import { createRegistryCheck } from './templates/registry-check.ts';
import { createTemplateParts } from './templates/templates.ts';
import { registerValidators } from './validators/validators.ts';
import { createVolumeParts } from './volumes/volumes.ts';

/** The part of backups that pods and rentals use. The backups module itself is built on top of the market. */
export type BackupPort = {
  /** Work on backups and restores in each pass of the pod sync. */
  operations: PodPartsDeps['operations'];
  /** Begins a backup according to the pod's schedule. Returns false if no backup could begin. */
  lastBackup(tx: Db, pod: Pod): Promise<boolean>;
  /** Returns true while a backup or restore of the pod runs. */
  isBackingUp(tx: Db, podId: string): Promise<boolean>;
  configOf: PodPartsDeps['backupConfigOf'];
  beginRestore: RentDeps['beginRestore'];
};

export type MarketParts = {
  processes: Processes;
  idempotency: Idempotency;
  backups: BackupPort;
  /** Providers' subscriptions to machine requests. */
  subscriptions: Subscriptions;
  /** Called when an account has spent money, in the same transaction. */
  afterSpend: RentDeps['afterSpend'];
  reportRefunds: ReportRefunds;
};

/** Creates the market. Starts no job and registers no route. */
export function createMarket(deps: MailDeps, parts: MarketParts) {
  const { db, clock, random } = deps.ports;
  const { objects = null, log, collateralFeed: feed = null } = deps.ports;
  const { processes, idempotency, backups, afterSpend, reportRefunds } = parts;
  const { lastBackup, isBackingUp } = backups;
  const wake = (executorId: string): void => pods.wake(executorId);
  const { allowsLoopback = false } = deps.options;
  const checkRegistry = createRegistryCheck({ clock, allowsLoopback });
  const templates = createTemplateParts(deps, checkRegistry);
  const executors = createExecutorParts(deps, {
    annotationsOf,
    officialTemplates: templates.listOfficial,
    history: (executorId, template) => launchHistoryFor(db, executorId, template),
  });
  const requests = createMachineRequestParts(deps, parts.subscriptions);
  const notices = createNoticeParts(deps, { wake, lastBackup });
  const volumes = createVolumeParts(deps, { processes, wake });
  const pods = createPodParts(deps, {
    processes,
    annotationsOf,
    ...volumes.ofPods,
    operations: backups.operations,
    backupConfigOf: backups.configOf,
    inMaintenance: notices.inMaintenance,
    checkRegistry,
  });
  const collateral = createCollateralJob({ db, clock, log, feed });
  const metrics = createMetricHistoryParts(deps);
  const reports = createReportParts(deps, reportRefunds);
  const stopDeps = { clock, random, wake, mails: deps.mails, lastBackup, isBackingUp };
  const dueHandlers: DueHandlers = {
    ...pods.dueHandlers,
    ...requests.dueHandlers,
    ...notices.dueHandlers,
    ...reports.dueHandlers,
    ...cutOffHandlers(stopDeps),
    ...idleHandlers(stopDeps),
    ...keyBudgetHandlers(stopDeps),
  };
  const recordsUploads = objects !== null && 'folder' in objects;

  return {
    /** Registers the routes below /api. */
    registerApi(api: HttpServer): void {
      templates.register(api, { clock, idempotency });
      executors.register(api);
      registerRentals(api, deps, {
        idempotency,
        wake,
        afterSpend,
        annotationsOf,
        beginRestore: backups.beginRestore,
        launchLimitMs: pods.launchLimitMs,
        pods: pods.pods,
        view: executors.view,
      });
      registerBookmarks(api, { db, clock, random, idempotency, annotationsOf });
      requests.register(api, { clock, idempotency });
      pods.register(api);
      metrics.register(api);
      registerSearch(api, { db, clock, view: executors.view });
      registerFeedbackRoutes(api, { clock, random, idempotency, recordsUploads });
      reports.register(api, { clock, idempotency });
      registerSupportChannels(api, deps);
      volumes.register(api, { clock, idempotency });
      registerValidators(api, deps, wake);
    },

    /** Services for the provider portal. */
    portal: {
      idempotency,
      overview: executors.overview,
      requests: requests.portal,
      notices: notices.portal,
      metricHistories: metrics.histories,
    },

    /**
     * Prepares search, official templates and a restored database. Must complete before the first request is served.
     */
    async prepare(): Promise<void> {
      await executors.prepare();
      await templates.prepare();
      await pods.prepare();
    },

    /** Milliseconds since the pod sync last polled its queue. */
    sinceSyncMs: pods.sincePollMs,

    /** Queues an immediate sync of this executor. */
    wake,

    /** Runs one pass of the pod sync over all executors that are due. Tests call it instead of `startJobs`. */
    syncOnce: pods.syncOnce,

    /** Ends the metered time of all pods until their nodes answer again. */
    suspendMeters: pods.suspendMeters,

    /** Decisions of operators about pods that the database does not have. */
    unknownPods: pods.unknownPods,

    /** Compares the pods of nodes without pods in the database. Tests call it instead of `startJobs`. */
    surveyPods: pods.surveyOnce,

    /** Runs one clean-up of volumes. Tests call it instead of `startJobs`. */
    cleanVolumes: volumes.runOnce,

    /** Applies the feed of deposits once. Tests call it instead of `startJobs`. */
    pollCollateral: collateral.runOnce,

    dueHandlers,

    /** Collects the samples of every executor that is due. Tests call it instead of `startJobs`. */
    collectMetrics: metrics.collectOnce,

    sweeps: {
      ...executors.sweeps,
      ...metrics.sweeps,
    } satisfies Sweeps,

    /** Deletes the market's data of an account, in the transaction that removes the account. */
    deleteAccountData: (tx: Db, accountId: string) => deleteMarketData(tx, accountId, clock.now()),

    podCleanup: pods.cleanup,

    startJobs(): { stop(): Promise<void> } {
      const jobs = [pods.start(), metrics.start()];
      volumes.start();
      collateral.start();
      return {
        async stop() {
          await Promise.all([...jobs.map((job) => job.stop()), volumes.stop(), collateral.stop()]);
        },
      };
    },
  };
}
