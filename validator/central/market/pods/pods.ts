/** Composes pods: their routes, the sync with their agents and their due work. Starts no job. */
import type { HttpServer } from '#shared/http/server.ts';
import { RESTORED_ROW } from '../../../database/restore-database.ts';
import { createDockerLogins } from '../../accounts/registry-logins/docker-credential.service.ts';
import { createPodSecrets } from '../../accounts/secrets/secret.service.ts';
import type { MailDeps } from '../../delivery/delivery.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Processes } from '../../platform/processes.ts';
import type { AnnotationsOf } from '../executors/node-annotations.ts';
import type { CheckRegistry } from '../templates/registry-check.ts';
import { createGpuUtilizations } from './gpu-utilization.ts';
import { DEFAULT_LAUNCH_LIMIT_MS } from './launch-limit.ts';
import { registerPodRoutes } from './pod.routes.ts';
import { createPods, type PodsDeps, type VolumesOfPods } from './pod.service.ts';
import { podDueHandlers } from './pod-due-handlers.ts';
import { registerPodEditRoutes } from './pod-edit.routes.ts';
import { createPodEdits } from './pod-edit.service.ts';
import { createNotebookTokens } from './pod-notebook.ts';
import { createPodCleanup } from './pod-removal.ts';
import {
  createPodSyncJob,
  DEFAULT_SYNC_CONCURRENCY,
  DEFAULT_SYNC_INTERVAL_MS,
} from './pod-sync.job.ts';
import type { SyncDeps } from './pod-sync.ts';
import { createSyncQueue } from './sync-queue.ts';
import { createUnknownPodsJob, SURVEY_INTERVAL_MS } from './unknown-pods.job.ts';
import { createUnknownPods } from './unknown-pods.ts';

export type PodPartsDeps = Pick<SyncDeps, 'operations' | 'volumes' | 'inMaintenance'> & {
  processes: Processes;
  annotationsOf: AnnotationsOf;
  volumesOfPods: VolumesOfPods;
  attachVolume: PodsDeps['attachVolume'];
  detachVolume(tx: Db, podId: string): Promise<void>;
  backupConfigOf: PodsDeps['backupConfigOf'];
  checkRegistry: CheckRegistry;
};

export function createPodParts(deps: MailDeps, parts: PodPartsDeps) {
  const { ports, mails, notifier, options, trust } = deps;
  const { db, clock, random, log, agents, secret } = ports;
  const { processes, annotationsOf, volumesOfPods, checkRegistry } = parts;
  const { launchLimitMs = DEFAULT_LAUNCH_LIMIT_MS } = options;
  const notebookToken = createNotebookTokens(secret);
  const wake = (executorId: string): void => sync.wake(executorId);
  const unknownPods = createUnknownPods({
    db,
    clock,
    random,
    log,
    wake(executorId) {
      wake(executorId);
      // The sync does not visit nodes without pods in the database.
      survey.wake(executorId);
    },
  });
  const survey = createUnknownPodsJob({
    db,
    clock,
    log,
    processes,
    agents,
    unknownPods,
    intervalMs: options.surveyIntervalMs ?? SURVEY_INTERVAL_MS,
    pollMs: options.pollMs ?? 0,
  });
  const sync = createPodSyncJob({
    db,
    clock,
    random,
    log,
    agents,
    mails,
    notebookToken,
    queue: createSyncQueue({ db, clock, processes }),
    syncIntervalMs: options.syncIntervalMs ?? DEFAULT_SYNC_INTERVAL_MS,
    syncConcurrency: options.syncConcurrency ?? DEFAULT_SYNC_CONCURRENCY,
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
    ...(options.busySyncMs === undefined ? {} : { busyIntervalMs: options.busySyncMs }),
    ...(options.unreachableSyncMs === undefined
      ? {}
      : { lastBackoffMs: options.unreachableSyncMs }),
    loginOf: createDockerLogins(ports),
    secretsOf: createPodSecrets(ports),
    operations: parts.operations,
    volumes: parts.volumes,
    unknownPods,
    inMaintenance: parts.inMaintenance,
    detachVolume: parts.detachVolume,
    launchLimitMs,
    trust,
    wakeOthers: () => notifier.notify('sync'),
  });
  const pods = createPods({
    db,
    clock,
    random,
    wake,
    notebookToken,
    annotationsOf,
    volumesOfPods,
    attachVolume: parts.attachVolume,
    backupConfigOf: parts.backupConfigOf,
  });
  const edits = createPodEdits({
    db,
    clock,
    random,
    wake,
    notebookToken,
    volumesOfPods,
    checkRegistry,
  });

  return {
    pods,
    launchLimitMs,
    dueHandlers: podDueHandlers({ clock, random, wake, mails, launchLimitMs }),

    cleanup: createPodCleanup({ db, clock, random, wake }),

    /** Queues an immediate sync of this executor. */
    wake,

    /** Registers the routes below /api. */
    register(api: HttpServer): void {
      const gpuUtilization = createGpuUtilizations({ db, clock, agents });
      registerPodRoutes(api, { pods, gpuUtilization });
      registerPodEditRoutes(api, edits);
    },

    /** Runs one pass of the sync over all executors that are due. Tests call it instead of `start`. */
    syncOnce: () => sync.runOnce(),

    /** Ends the metered time of all pods, so that no renter is charged for a correction of the clock. */
    suspendMeters: () => sync.suspendMeters('now'),

    /** Charges no renter for the time between a restored copy of the database and this start. */
    async prepare(): Promise<void> {
      const isRestored = db.selectFrom('meta').select('name').where('name', '=', RESTORED_ROW);
      if ((await isRestored.executeTakeFirst()) === undefined) return;
      await sync.suspendMeters('last-contact');
      await db.deleteFrom('meta').where('name', '=', RESTORED_ROW).execute();
    },

    unknownPods,

    /** Compares the pods of nodes outside the sync queue with the database. Tests call it instead of `start`. */
    surveyOnce: () => survey.runOnce(),

    /** Milliseconds since the sync last polled its queue. */
    sincePollMs: sync.sincePollMs,

    start(): { stop(): Promise<void> } {
      sync.start();
      survey.start();
      const stopListening = notifier.onNotify('sync', () => sync.poll());
      return {
        async stop() {
          stopListening();
          await Promise.all([sync.stop(), survey.stop()]);
        },
      };
    },
  };
}
