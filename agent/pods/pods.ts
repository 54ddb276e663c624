/** Composes the pods: service, workers, reconcile loop and periodic checks. README.md in this folder explains the design. */
import type { NotebookView } from '#shared/api/agent/notebook.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import { createHeartbeat } from '#shared/runtime/liveness.ts';
import type { Loop } from '#shared/runtime/loop.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import type { Containers } from '../containers/containers.ts';
import type { EndLeftoverTask } from '../containers/engine/leftover-task.ts';
import type { Gpus } from '../gpu/gpus.ts';
import type { PortService } from '../leases/port.service.ts';
import { type PeriodicWork, startWork } from '../periodic-work.ts';
import type { HostLimits } from './admission.ts';
import { createLifetimes, LIFETIME_INTERVAL_MS } from './lifetime.job.ts';
import { createLostPods } from './lost-pods.ts';
import { createOomEvents } from './oom-events.ts';
import { createPodFacts } from './plan-facts.ts';
import { registerPodRoutes } from './pod.routes.ts';
import { createPodService } from './pod.service.ts';
import { createPodData, createPodPause } from './pod-data.ts';
import { createPodPulls } from './pod-pulls.ts';
import type { PodRecords } from './pod-records.ts';
import { createPodSecrets } from './pod-secrets.ts';
import { MOUNT_POINT, type PodSsh } from './pod-ssh.ts';
import { createPodSteps } from './pod-steps.ts';
import { createPodSupervisor } from './pod-worker.ts';
import { createReconcile, RECONCILE_INTERVAL_MS } from './reconcile.job.ts';
import type { SecretFiles } from './secret-files.ts';
import type { LaunchStage } from './step-ports.ts';
import type { StoreRebuild } from './store-rebuild.ts';
import { createWatches, type WatchesPorts } from './watches.ts';

export type PodsPorts = WatchesPorts & {
  endLeftoverTask: EndLeftoverTask;
  /** `bootId` is empty if the kernel does not report one. */
  host: HostLimits & { bootMs: number; bootId: string };
  /** Folder with sftp-server, which is mounted into every pod; null if the host has none. */
  sftpFolder: string | null;
  database: DatabaseSync;
  /** Ports of the SSH gateway by pod id that the last run of the agent left. */
  sshPorts: Record<string, number>;
  /** The agent's key, which seals secrets at rest. */
  secret: Uint8Array;
  secretFiles: SecretFiles;
  trust: Pick<ClockTrust, 'isSuspect'>;
  /** Called after a pull with the number of bytes received. */
  onPulled(bytes: number): void;
  /** Called when a launch step has succeeded. */
  onLaunchStep(stage: LaunchStage, tookMs: number): void;
  /** Called when the kernel has killed a process of the pod because it was out of memory. */
  onOom(podId: string): void;
  /** Called after each reconcile pass; `failure` is null if it completed. */
  onReconciled(tookMs: number, failure: 'engine_away' | 'internal' | null): void;
  /** Called when the engine's event stream was opened again after an interruption. */
  onEventsReopened(): void;
};

export type PodsDeps = {
  rebuild: StoreRebuild;
  records: PodRecords;
  portLeases: PortService;
  gpus: Gpus;
  containers: Containers;
  ssh: PodSsh;
  notebookOf(podId: string): NotebookView | null;
  /** True while a restore exchanges the pod's data. No container of the pod may run. */
  isPaused(podId: string): boolean;
};

export type Pods = ReturnType<typeof createPods>;

/** Composes the module. Starts no loops before `start` is called. */
export function createPods(ports: PodsPorts, deps: PodsDeps) {
  const { executorId, clock, random, log, engine, host } = ports;
  const { rebuild, records, portLeases, containers, ssh, isPaused } = deps;
  const { gpuLeases, gpuMode, placeOf } = deps.gpus;
  const { health, podVolumes, images } = containers;
  const { bootId } = host;
  const watches = createWatches(ports, deps);
  const { diskQuota, diskWatch, gpuWatch } = watches;
  const pulls = createPodPulls({
    clock,
    onPulled: ports.onPulled,
    livePods: () => records.live().map(({ id }) => id),
  });
  const secrets = createPodSecrets({
    database: ports.database,
    random,
    secret: ports.secret,
    files: ports.secretFiles,
  });
  const steps = createPodSteps({
    executorId,
    engine,
    records,
    clock,
    random,
    bootId,
    gpuLeases,
    gpuMode,
    placeOf,
    diskQuota,
    ssh,
    secrets,
    endLeftoverTask: ports.endLeftoverTask,
    images: images.podImages,
    ports: portLeases,
    networks: containers.networks,
    volumes: podVolumes,
    persistentVolumes: containers.persistentVolumes,
    readOnlyMounts:
      ports.sftpFolder === null ? [] : [{ source: ports.sftpFolder, target: MOUNT_POINT }],
    onPull: pulls.note,
    onLaunchStep: ports.onLaunchStep,
  });
  const factsOf = createPodFacts({
    ports: portLeases,
    gpuLeases,
    ssh,
    clock,
    bootId,
    health,
    isPaused,
  });
  const common = { executorId, engine, health, records, ports: portLeases, clock, log, factsOf };
  const oomEvents = createOomEvents(records);
  const supervisor = createPodSupervisor({
    ...common,
    steps,
    oomEvents,
    images: images.podImages,
    random,
    onPull: pulls.note,
  });
  const reconcile = createReconcile({
    ...common,
    supervisor,
    oomEvents,
    onOom: ports.onOom,
    onRun: ports.onReconciled,
  });
  const service = createPodService({
    ...common,
    lost: createLostPods(common),
    requireSeeded: rebuild.requireSeeded,
    gpuLeases,
    gpuMode,
    supervisor,
    host,
    pulls,
    engineAway: health.awayBecause,
    diskOf: diskWatch.conditionOf,
    gpuHealthOf: gpuWatch.conditionOf,
    ssh,
    logins: images.logins,
    secrets,
    notebookOf: deps.notebookOf,
  });
  const lifetimes = createLifetimes({ records, service, clock, trust: ports.trust, log });
  const turns = createHeartbeat(clock);
  const reconcileWork: PeriodicWork = {
    name: 'reconcile',
    intervalMs: RECONCILE_INTERVAL_MS,
    run: () => turns.beatAfter(reconcile.runOnce),
  };
  const work: PeriodicWork[] = [
    { name: 'lifetimes', intervalMs: LIFETIME_INTERVAL_MS, run: () => lifetimes.runOnce() },
    { ...rebuild.work, run: () => rebuild.work.run().then(dropSecrets) },
    ...watches.work,
  ];
  let hasDropped = false;
  /** Removes the secrets of pods that ended while the agent did not run. The pods of a lost store still use theirs. */
  function dropSecrets(): void {
    if (hasDropped || rebuild.isPending()) return;
    secrets.retain(new Set(records.live().map(({ id }) => id)));
    hasDropped = true;
  }
  const stopping = new AbortController();
  let loops: Loop[] = [];
  let events = Promise.resolve();

  return {
    ...watches,
    ...createPodData(records, containers),
    records,
    rebuild,
    service,
    supervisor,
    reconcile,
    pulls,
    pause: createPodPause({ executorId, health, records, supervisor, isPaused }),

    register(server: HttpServer): void {
      registerPodRoutes(server, service);
    },

    /** Starts the loops. Never waits for the engine. */
    start(): void {
      const relist = startWork(reconcileWork, { clock, log });
      loops = [relist, ...work.map((each) => startWork(each, { clock, log }))];
      let isFirst = true;
      events = reconcile.followEvents(stopping.signal, () => {
        if (!isFirst) ports.onEventsReopened();
        isFirst = false;
        relist.wake();
      });
    },

    /** Milliseconds since the last reconcile pass ended. */
    sinceReconcileMs: turns.ageMs,

    /** Ends loops and workers. Pods keep running. */
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.all([...loops.map((each) => each.stop()), events, supervisor.stop()]);
    },
  };
}
