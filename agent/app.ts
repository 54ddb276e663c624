/** Composition root of the agent: takes ports, returns a server and the loops that keep pods running. */

import { withDeadline } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createGuardedClock, type GuardedClock } from '#shared/runtime/guarded-clock.ts';
import type { Liveness } from '#shared/runtime/liveness.ts';
import type { Loop } from '#shared/runtime/loop.ts';
import { clockFamily } from '#shared/telemetry/clock-family.ts';
import { type AccessPorts, createAccess } from './access/access.ts';
import { type BackupsPorts, createBackups, volumeOperationsOf } from './backups/backups.ts';
import { pausesPod } from './backups/operation.state.ts';
import { createOperationStore } from './backups/operation.store.ts';
import { type ContainersPorts, createContainers } from './containers/containers.ts';
import { observedEngine } from './containers/engine/engine-health.ts';
import { createGpus, type GpusPorts } from './gpu/gpus.ts';
import { createDiskPercent, createDiskSpace } from './host/disk-space.ts';
import { type HostPorts, registerHostRoutes } from './host/host.ts';
import { storeProblem } from './host/store-probe.ts';
import { createLeaseStore } from './leases/lease.store.ts';
import { createPortService, type PortProbe } from './leases/port.service.ts';
import { createListeners, type ListenersPorts } from './listeners.ts';
import { AGENT_PREFIX } from './metrics/instruments.ts';
import { createMeasurements, type MeasurementPorts } from './metrics/measurements.ts';
import { startWork } from './periodic-work.ts';
import type { DiskSpace } from './pods/disk-limit.ts';
import { podUsageOf } from './pods/pod-generations.ts';
import { createPodRecords } from './pods/pod-records.ts';
import { createPods, type PodsPorts } from './pods/pods.ts';
import { createStoreRebuild } from './pods/store-rebuild.ts';
import { createSelfUpdate, type SelfUpdatePorts } from './updates/updates.ts';
import { createVerification, type VerificationPorts } from './verify/verification.ts';

/** Time limit for the engine's answer to a ping. */
const PING_DEADLINE_MS = 5_000;

/** Ports of every module, without the callbacks between modules, which `createAgent` connects. */
export type AgentPorts = Omit<
  AccessPorts &
    BackupsPorts &
    ContainersPorts &
    GpusPorts &
    HostPorts &
    ListenersPorts &
    MeasurementPorts &
    PodsPorts &
    SelfUpdatePorts &
    VerificationPorts,
  `on${Capitalize<string>}` | 'diskPercent' | 'diskSpace' | 'trust'
> & {
  probePort: PortProbe;
  /**
   * Guard that provides `clock`; the caller starts and stops it. If it is absent, the agent creates a guard that
   * checks `clock` but does not correct it.
   */
  guard?: GuardedClock;
  /** Replaces the space of the disk with the engine's data. */
  diskSpace?(): Promise<DiskSpace>;
};

export type Agent = ReturnType<typeof createAgent>;

/** Creates an agent. Several may run in one process: calls share no state. */
export function createAgent(options: AgentPorts) {
  const { clock, log, metrics, database } = options;
  const engine = observedEngine(options.engine, clock, metrics.engineCalled);
  const stopping = new AbortController();
  const guard = options.guard ?? createGuardedClock({ clock, log });
  metrics.add([clockFamily(AGENT_PREFIX, guard)]);
  const ports = {
    ...options,
    engine,
    trust: guard,
    diskPercent: createDiskPercent(clock, engine),
    diskSpace: options.diskSpace ?? createDiskSpace(clock, engine),
    onFirewallDrift: metrics.firewallDrifted,
    onImageRemoved: metrics.removedImage,
    onLogFrames: metrics.logged,
    onOrphans: metrics.setOrphans,
    onPulled: metrics.pulledBytes,
    onLaunchStep: metrics.launched,
    onEventsReopened: metrics.eventsReopened,
    onOom: (podId: string) => measurements.metricsJob.noteOom(podId),
    onReconciled: (tookMs: number, failure: 'engine_away' | 'internal' | null) =>
      metrics.reconciled(tookMs, failure, clock.now()),
    onOperationEnded(row: Parameters<BackupsPorts['onOperationEnded']>[0]) {
      metrics.operationEnded(row);
      measurements.metricsJob.noteOperation(row);
    },
  };

  const leases = createLeaseStore(database);
  const portLeases = createPortService({
    leases,
    probe: ports.probePort,
    clock,
    range: ports.portRange,
  });
  const operationStore = createOperationStore(database);
  const records = createPodRecords({ database, clock, onWrite: () => access.ssh.publishSoon() });
  const gpus = createGpus(ports, leases);
  const containers = createContainers(ports, {
    leases,
    podUsage: podUsageOf(records),
    volumeOperations: volumeOperationsOf(operationStore),
  });
  const { images, firewall } = containers;
  const rebuild = createStoreRebuild({ ...ports, records, leases });
  const isRebuilding = rebuild.isPending;
  const access = createAccess(ports, { records, portLeases, images, isRebuilding });
  const pods = createPods(ports, {
    rebuild,
    records,
    portLeases,
    gpus,
    containers,
    ssh: access.ssh,
    notebookOf: access.notebookOf,
    isPaused: (podId) => pausesPod(operationStore.activeOf(podId)),
  });
  const { operations, ...backups } = createBackups(ports, {
    store: operationStore,
    pods,
    volumes: containers.persistentVolumes,
  });
  const { ensureBuiltinImage } = containers;
  const verification = createVerification(
    ports,
    { records, portLeases, ensureBuiltinImage },
    stopping.signal,
  );
  const updates = createSelfUpdate(ports, {
    records,
    operations: operationStore,
    verify: verification.verify,
  });
  const { logFollowers } = access;
  const { status: updateStatus } = updates;
  const measurements = createMeasurements(
    ports,
    { ...gpus, ...pods, firewall, leases, portLeases, operations: operationStore },
    { logFollowers, updateStatus },
  );

  const listeners = createListeners(ports);
  const { server, monitoring } = listeners;
  pods.register(server);
  backups.register(server);
  access.register(server, pods.service);
  verification.register(server);
  measurements.register(listeners);
  registerHostRoutes(listeners, ports, {
    pods,
    gpus,
    firewall,
    portLeases,
    gpuRuntimeTried: verification.gpuRuntimeTried,
    updateStatus,
  });
  let loops: Loop[] = [];

  return {
    server,
    /** Separate listener for metrics and health; null if there is none. The caller starts to listen. */
    monitoring,
    /** The pod service, which tests call without HTTP. */
    pods: pods.service,
    /** The composed services, for tests. */
    core: { leases, portLeases, ssh: access.ssh, ...gpus, ...containers, ...pods },
    samples: measurements.samples,
    sampleHistory: measurements.history,
    metricsJob: measurements.metricsJob,
    operations,

    /** State of the engine, the store and the reconcile loop, reported to the service manager. */
    vitals: async (): Promise<Liveness> => ({
      engine: await withDeadline(clock, PING_DEADLINE_MS, engine.ping()).then(
        () => 'answers',
        () => 'away',
      ),
      storeProblem: storeProblem(database, clock.now()),
      heartbeatAgeMs: pods.sinceReconcileMs(),
    }),

    /** Starts the loops. Never waits for the engine. The caller starts to listen. */
    start(): void {
      const warnOf = (what: string) => (error: unknown) =>
        log.warn({ detail: messageOf(error) }, `${what} of an earlier run could not be removed`);
      verification.removeStaleProbes().catch(warnOf('probes'));
      verification.removeStaleProofs().catch(warnOf('proofs'));
      access.removeLeftovers().catch(warnOf('shells'));
      // Containers come first: their work sets the firewall rules before any pod is reconciled.
      const modules = [containers, gpus, access, verification, measurements, updates, listeners];
      loops = modules.flatMap(({ work }) => work.map((each) => startWork(each, { clock, log })));
      pods.start();
      access.start();
      operations.start();
    },

    /** Ends requests, loops and workers. Pods keep running. */
    async stop(): Promise<void> {
      stopping.abort();
      await access.closeStreams();
      await listeners.close();
      await operations.stop();
      await Promise.all([pods.stop(), ...loops.map((each) => each.stop())]);
      await access.stop();
      metrics.close();
      ports.kernelLog.close();
    },
  };
}
