/** Composes the market: nodes, rentals, pods, volumes, machine requests, notices and validators. */
import type { HttpServer } from '#shared/http/server.ts';
import type { MailDeps } from '../delivery/delivery.ts';
import type { Db, Pod } from '../platform/database/tables.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { Processes } from '../platform/processes.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import type { DueHandlers } from '../platform/schedule/schedule.ts';
import { deleteMarketData } from './account-data.ts';
import { annotationsOf } from './annotations.ts';
import { registerBookmarkRoutes } from './bookmarks/bookmark.routes.ts';
import { createBookmarks } from './bookmarks/bookmark.service.ts';
import { cutOffHandlers } from './cut-off/cut-off.ts';
import { idleHandlers } from './cut-off/idle-shutdown.ts';
import { createExecutorParts } from './executors/executors.ts';
import { deleteOldImageSizes } from './executors/pull-speed.ts';
import { registerFeedbackRoutes } from './feedback/feedback.routes.ts';
import { registerMachineRequestRoutes } from './machine-requests/machine-request.routes.ts';
import { createMachineRequests } from './machine-requests/machine-request.service.ts';
import { createPortalRequests } from './machine-requests/portal-request.service.ts';
import { createRequestNews, type Subscriptions } from './machine-requests/request-news.ts';
import { maintenanceAt } from './notices/maintenance.ts';
import { noticeDueHandlers } from './notices/notice.due.ts';
import { createNotices } from './notices/notice.service.ts';
import { launchHistoryFor } from './pods/launch-eta.ts';
import { createPodParts, type PodPartsDeps } from './pods/pods.ts';
import { registerRentalRoutes } from './rentals/rental.routes.ts';
import type { RentDeps } from './rentals/rental.service.ts';
import { createLocalChannels } from './support-channels/local-channels.ts';
import { registerSupportChannelRoutes } from './support-channels/support-channel.routes.ts';
import { createPodChannels } from './support-channels/support-channel.service.ts';
import { ensureOfficialTemplates } from './templates/official-templates.ts';
import { registerTemplateRoutes } from './templates/template.routes.ts';
import { createTemplates } from './templates/template.service.ts';
import { registerUpdaterRoutes } from './updater/updater.routes.ts';
import { createSignedDigests } from './updater/updater.service.ts';
import { createSetWeights } from './validators/set-weights.service.ts';
import {
  registerSetWeightsRoutes,
  registerValidatorRoutes,
} from './validators/validator.routes.ts';
import { createValidators } from './validators/validator.service.ts';
import { detachVolume, volumesOfPods } from './volumes/volume-attachment.ts';
import { createVolumeParts } from './volumes/volumes.ts';

/** The part of backups that pods and rentals use; backups themselves are built on top of the market. */
export type BackupPort = {
  /** Passes over the agents, made in the turns of the pod sync. */
  operations: PodPartsDeps['operations'];
  /** Begins a backup by the pod's own schedule; false when none could begin. */
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
};

/** Nothing runs and nothing is registered yet. */
export function createMarket(deps: MailDeps, parts: MarketParts) {
  const { db, clock, random, agents } = deps.ports;
  const { objects = null } = deps.ports;
  const { processes, idempotency, backups, afterSpend } = parts;
  const { mails, wakeMail } = deps;
  const baseUrl = deps.options.channelUrl ?? null;
  const wake = (executorId: string): void => pods.wake(executorId);
  const templates = createTemplates({ db, clock, random });
  const executors = createExecutorParts(deps, {
    annotationsOf,
    officialTemplates: async () =>
      (await templates.list(null)).filter((template) => template.user_id === null),
    history: (executorId, template) => launchHistoryFor(db, executorId, template),
  });
  const volumes = createVolumeParts(deps, { processes, wake });
  const pods = createPodParts(deps, {
    processes,
    annotationsOf,
    volumesOfPods,
    operations: backups.operations,
    backupConfigOf: backups.configOf,
    volumes: volumes.sync,
    inMaintenance: async (id, atMs) => (await maintenanceAt(db, id, atMs)) !== null,
    detachVolume: (tx, podId) => detachVolume(tx, { clock, random }, podId),
  });
  const noticeDeps = { db, clock, random, mails, wakeMail };
  const { lastBackup, isBackingUp } = backups;
  const news = createRequestNews({ ...noticeDeps, subscriptions: parts.subscriptions });
  const stopDeps = { clock, random, wake, mails, lastBackup, isBackingUp };
  const dueHandlers: DueHandlers = {
    ...pods.dueHandlers,
    ...news.dueHandlers,
    ...noticeDueHandlers({ ...noticeDeps, wake, lastBackup }),
    ...cutOffHandlers(stopDeps),
    ...idleHandlers(stopDeps),
  };
  const knowsArrivals = objects !== null && 'folder' in objects;
  const channels = deps.ports.channels ?? createLocalChannels({ db, clock, random, baseUrl });

  return {
    /** Routes below /api. */
    registerApi(api: HttpServer): void {
      const { beginRestore } = backups;
      const rentDeps = { clock, random, idempotency, wake, afterSpend, beginRestore };
      registerTemplateRoutes(api, templates);
      executors.register(api);
      registerRentalRoutes(api, {
        ...rentDeps,
        pods: pods.pods,
        view: executors.view,
        annotationsOf,
      });
      const bookmarks = createBookmarks({ db, clock, random, annotationsOf });
      registerBookmarkRoutes(api, { clock, idempotency, bookmarks });
      const requests = createMachineRequests({ db, clock, random });
      registerMachineRequestRoutes(api, { clock, idempotency, requests });
      pods.register(api);
      registerFeedbackRoutes(api, { clock, random, idempotency, knowsArrivals });
      registerSupportChannelRoutes(api, createPodChannels({ db, clock, channels }));
      volumes.register(api, { clock, idempotency });
      registerValidatorRoutes(api, createValidators({ db, clock, agents, wake }));
      registerSetWeightsRoutes(api, createSetWeights({ db, clock }));
      registerUpdaterRoutes(api, createSignedDigests({ clock, agents }));
    },

    /** Services that the provider portal shows. */
    portal: {
      idempotency,
      overview: executors.overview,
      requests: createPortalRequests({ db, clock, tellFulfilled: news.tellFulfilled }),
      notices: createNotices(noticeDeps),
    },

    /** Must complete before the first request is served. */
    async prepare(): Promise<void> {
      await executors.prepare();
      await ensureOfficialTemplates(db, clock);
    },

    /** Milliseconds since the pod sync last polled its queue. */
    sinceSyncMs: pods.sincePollMs,

    /** Queues an immediate sync of this executor. */
    wake,

    /** One pass of the pod sync over everything due: tests call it instead of `startJobs`. */
    syncOnce: pods.syncOnce,

    /** One clean-up of volumes, for the same. */
    cleanVolumes: volumes.runOnce,

    dueHandlers,

    sweeps: { 'image-sizes': (tx) => deleteOldImageSizes(tx, clock.now()) } satisfies Sweeps,

    /** Deletes the market's data of an account, in the transaction that removes the account. */
    deleteAccountData: (tx: Db, accountId: string) => deleteMarketData(tx, accountId, clock.now()),

    podCleanup: pods.cleanup,

    startJobs(): { stop(): Promise<void> } {
      const podJobs = pods.start();
      volumes.start();
      return {
        async stop() {
          await Promise.all([podJobs.stop(), volumes.stop()]);
        },
      };
    },
  };
}
