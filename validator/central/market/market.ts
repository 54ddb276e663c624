/** The market's half of the central API put together: nodes, rentals, pods, providers, validators. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Vitals } from '#shared/runtime/liveness.ts';
import { runEach, startLoop } from '#shared/runtime/loop.ts';
import { isPostgres } from '../../database/engine.ts';
import { createDockerLogins } from '../accounts/registry-logins/docker-credential.service.ts';
import { activeConfigOf } from '../backups/backup-config.service.ts';
import { createBackupWork } from '../backups/backup-work.ts';
import { registerStreams } from '../delivery/streams/streams.ts';
import { cutOffHandlers } from '../money/cut-off/cut-off.ts';
import { idleHandlers } from '../money/cut-off/idle-shutdown.ts';
import { registerBilling, registerStatement } from '../money/metering/statement.routes.ts';
import { createStatements } from '../money/metering/statement.service.ts';
import { type AfterSpend, createTickJob } from '../money/metering/tick.job.ts';
import { paidOutUntil } from '../money/payouts/payout.service.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import { createIdempotency } from '../platform/idempotency/idempotency.ts';
import { createProcesses } from '../platform/processes/process.service.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import type { DueHandlers } from '../platform/schedule/schedule.ts';
import { registerSharedConfig } from '../providers/portal.routes.ts';
import { registerPortal } from '../providers/portal.ts';
import { subscriptions } from '../providers/subscriptions.ts';
import { notesOf } from './annotations.ts';
import { registerBookmarkRoutes } from './bookmarks/bookmark.routes.ts';
import { createBookmarks } from './bookmarks/bookmark.service.ts';
import { createDeploymentEstimates } from './executors/deployment-estimate.ts';
import { registerExecutorRoutes } from './executors/executor.routes.ts';
import { createExecutors } from './executors/executor.service.ts';
import { createHardwareUtilizations } from './executors/hardware-utilization.ts';
import { forgetForeignRevisions } from './executors/market.store.ts';
import { createMarketOverview } from './executors/market-overview.ts';
import { createMarketView } from './executors/market-view.ts';
import { forgetOldImages } from './executors/pull-measures.ts';
import { registerFeedbackRoutes } from './feedback/feedback.routes.ts';
import { registerMachineRequestRoutes } from './machine-requests/machine-request.routes.ts';
import { createMachineRequests } from './machine-requests/machine-request.service.ts';
import { createPortalRequests } from './machine-requests/portal-request.service.ts';
import { createRequestNews } from './machine-requests/request-news.ts';
import { maintenanceAt } from './notices/maintenance.ts';
import { noticeDueHandlers } from './notices/notice.due.ts';
import { createNotices } from './notices/notice.service.ts';
import { registerGpuUtilization } from './pods/gpu-utilization.routes.ts';
import { createGpuUtilizations } from './pods/gpu-utilization.ts';
import { templateKnowledge } from './pods/launch-eta.ts';
import { createNotebookTokens } from './pods/notebook-token.ts';
import { registerPodRoutes } from './pods/pod.routes.ts';
import { createPods } from './pods/pod.service.ts';
import { requireAnyOwnPod } from './pods/pod-access.ts';
import { createPodClearance } from './pods/pod-clearance.ts';
import { registerPodEditRoutes } from './pods/pod-edit.routes.ts';
import { createPodEdits } from './pods/pod-edit.service.ts';
import { registerPodHistoryRoutes } from './pods/pod-history.routes.ts';
import { createPodHistory } from './pods/pod-history.service.ts';
import { createPodSyncJob } from './pods/pod-sync.job.ts';
import { podDueHandlers } from './pods/pod-upkeep.ts';
import { createSharedTurns } from './pods/shared-turns.ts';
import { createLocalTurns } from './pods/sync-turns.ts';
import { registerRentBySpec } from './rentals/rent-by-spec.routes.ts';
import { registerRentalRoutes } from './rentals/rental.routes.ts';
import type { RentDeps } from './rentals/rental.service.ts';
import { createLocalChannels } from './support-channels/local-channels.ts';
import { registerSupportChannelRoutes } from './support-channels/support-channel.routes.ts';
import { createPodChannels } from './support-channels/support-channel.service.ts';
import { createTemplates } from './templates/template.service.ts';
import { registerUpdaterRoutes } from './updater/updater.routes.ts';
import { createSignedDigests } from './updater/updater.service.ts';
import { createSetWeights } from './validators/set-weights.service.ts';
import {
  registerSetWeightsRoutes,
  registerValidatorRoutes,
} from './validators/validator.routes.ts';
import { createValidators } from './validators/validator.service.ts';
import { detachVolume, volumesOfPods } from './volumes/volume.attach.ts';
import { createVolumeWork } from './volumes/volume-work.ts';

/** How often turns on nodes without pods are removed, each process's own. */
const SWEEP_INTERVAL_MS = 600_000;
/** Between two settlements of a running pod (marketplace reference 2.3.4). */
const TICK_MS = 60_000;

/** What follows from spends: of many accounts with what they have left, or of one. */
export type MarketAfter = { afterSpend: AfterSpend; afterSpendOf: RentDeps['afterSpend'] };

/** Nothing runs and nothing is registered yet. */
export function createMarket({ after, ...deps }: CentralDeps & { after: MarketAfter }) {
  const { db, clock, random, log, agents, secret } = deps.ports;
  const notebookToken = createNotebookTokens(secret);
  const baseUrl = deps.options.channelUrl ?? null;
  const loginOf = createDockerLogins(deps.ports);
  const shared = isPostgres(db);
  const processes = createProcesses({ db, clock, log, bootId: random.uuid(), shared });
  const turns = shared
    ? createSharedTurns({ db, clock, processes })
    : createLocalTurns({ db, clock });
  const wakeOthers = () => deps.notifier.notify('sync');
  const wake = (executorId: string): void => sync.wake(executorId);
  const backups = createBackupWork(deps, { processes, wake });
  const volumes = createVolumeWork(deps, { processes, wake });
  const { mails, wakeMail } = deps;
  const noticeDeps = { db, clock, random, mails, wakeMail };
  const news = createRequestNews({ ...noticeDeps, subscriptions });
  const stopDeps = {
    ...{ clock, random, wake, mails },
    lastBackup: backups.lastBackup,
    isBackingUp: backups.isWorkingOn,
  };
  const dueHandlers: DueHandlers = {
    ...podDueHandlers({ clock, random, wake, mails }),
    ...news.dueHandlers,
    ...noticeDueHandlers({ ...noticeDeps, wake, lastBackup: backups.lastBackup }),
    ...cutOffHandlers(stopDeps),
    ...idleHandlers(stopDeps),
  };
  const { meterTickMs: intervalMs = TICK_MS } = deps.options;
  const { afterSpend } = after;
  const meter = createTickJob({ db, clock, random, log, intervalMs, afterSpend });
  const sync = createPodSyncJob({
    ...{ db, clock, random, log, agents, notebookToken, loginOf, mails: deps.mails },
    operations: backups.operations,
    volumes: volumes.sync,
    inMaintenance: async (id, atMs) => (await maintenanceAt(db, id, atMs)) !== null,
    detachVolume: (tx, podId) => detachVolume(tx, { clock, random }, podId),
    turns,
    wakeOthers,
  });
  const idempotency = createIdempotency({ db, clock, random, processes });
  const pods = createPods({
    ...{ db, clock, random, wake, notebookToken, notesOf, volumesOfPods },
    backupConfigOf: activeConfigOf,
  });
  const podEdits = createPodEdits({ db, clock, random, wake, notebookToken, volumesOfPods });
  const view = createMarketView({ db });
  const { objects = null } = deps.ports;
  const knowsArrivals = objects !== null && 'folder' in objects;
  const channels = deps.ports.channels ?? createLocalChannels({ db, clock, random, baseUrl });
  const templates = createTemplates({ db, clock, random });
  const overview = createMarketOverview({
    db,
    officialTemplates: async () =>
      (await templates.list(null)).filter((template) => template.user_id === null),
  });
  const clearance = createPodClearance({ db, clock, random, wake });
  const statements = createStatements({ db, requirePodOf: requireAnyOwnPod, paidOutUntil });

  return {
    /** What answers a repeated request as the first one. */
    idempotency,

    /** Routes below /api. */
    registerApi(api: HttpServer): void {
      const executors = createExecutors({ db, clock, view, notesOf });
      const utilization = createHardwareUtilizations({ db, clock, agents });
      const estimates = createDeploymentEstimates({
        db,
        knowledge: (executorId, template) => templateKnowledge(db, executorId, template),
      });
      registerExecutorRoutes(api, { executors, overview, utilization, estimates });
      const rentDeps = { clock, random, idempotency, wake, afterSpend: after.afterSpendOf };
      registerRentalRoutes(api, { ...rentDeps, pods });
      registerRentBySpec(api, { ...rentDeps, view, notesOf });
      const bookmarks = createBookmarks({ db, clock, random, notesOf });
      registerBookmarkRoutes(api, { clock, idempotency, bookmarks });
      const requests = createMachineRequests({ db, clock, random });
      registerMachineRequestRoutes(api, { clock, idempotency, requests });
      registerPodRoutes(api, pods);
      registerPodEditRoutes(api, podEdits);
      registerStatement(api, statements);
      registerPodHistoryRoutes(api, createPodHistory({ db, clock }));
      registerFeedbackRoutes(api, { clock, random, idempotency, knowsArrivals });
      registerSupportChannelRoutes(api, createPodChannels({ db, clock, channels }));
      registerGpuUtilization(api, createGpuUtilizations({ db, clock, agents }));
      backups.register(api, { clock, idempotency });
      volumes.register(api, { clock, idempotency });
      registerStreams(api, deps);
      registerValidatorRoutes(api, createValidators({ db, clock, agents, wake }));
      registerSetWeightsRoutes(api, createSetWeights({ db, clock }));
      registerUpdaterRoutes(api, createSignedDigests({ clock, agents }));
      registerSharedConfig(api);
    },

    /** Routes below /portal. */
    registerPortal(portal: HttpServer): void {
      registerPortal(portal, deps, {
        ...{ idempotency, overview },
        requests: createPortalRequests({ db, clock, tellFulfilled: news.tellFulfilled }),
        notices: createNotices(noticeDeps),
      });
      registerBilling(portal, { statements, clock });
    },

    /** Routes at the origin. */
    registerOrigin: registerSharedConfig,

    /** To be awaited before requests are taken. */
    register: async () => {
      await forgetForeignRevisions(db);
      await processes.register();
    },

    /** For who looks whether this process works. */
    vitals: (): Vitals => ({
      sinceTurnMs: sync.sinceLookMs(),
      storeProblem: processes.problemOfStore(),
      engine: 'unused',
    }),

    /** To be called when no request is under way any more. */
    leave: () => processes.leave(),

    /** One pass of the pod sync over everything due: tests call it instead of `startJobs`. */
    syncOnce: () => sync.runOnce(),

    /** One tick of the meter, for the same. */
    meterOnce: () => meter.runOnce(),

    /** One look at the schedules of backups, and one clean-up of them and of volumes: tests call it instead of `startJobs`. */
    tendBackups: () => runEach([backups.runOnce, volumes.runOnce]),

    /** What it does when its time has come. */
    dueHandlers,

    /** What removes old rows. */
    sweeps: {
      'idempotency-keys': idempotency.sweep,
      'image-sizes': (tx) => forgetOldImages(tx, clock.now()),
      'backup-logs': backups.sweep,
    } satisfies Sweeps,

    /** Removes everybody's pods, and tells how many are left. */
    clearance,

    startJobs(): { stop(): Promise<void> } {
      processes.start();
      sync.start();
      meter.start();
      backups.start();
      volumes.start();
      const stopListening = deps.notifier.onNotify('sync', () => sync.look());
      const sweep = startLoop({
        clock,
        intervalMs: SWEEP_INTERVAL_MS,
        run: sync.sweep,
        onError: (error) => log.error({ err: error }, 'sweeping turns failed'),
      });
      return {
        async stop() {
          stopListening();
          await Promise.all([
            sync.stop(),
            meter.stop(),
            backups.stop(),
            volumes.stop(),
            sweep.stop(),
          ]);
        },
      };
    },
  };
}
