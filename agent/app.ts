/** Composition root of the agent: ports in, one listening-ready server and its loops out. */
import type { PullProgress } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import type { Log } from '#shared/log.ts';
import { startLoop } from '#shared/loop.ts';
import type { Random } from '#shared/random.ts';
import type { DatabaseSync } from '#shared/sqlite.ts';
import { type Auth, registerAuth } from './auth/auth.ts';
import type { ContainerEngine } from './docker/engine.ts';
import { createEngineHealth } from './docker/engine-health.ts';
import type { GpuDriver } from './gpu/gpu-driver.ts';
import { createGpuLeases, type GpuSource } from './gpu/gpu-lease.ts';
import type { HostProbe } from './hardware/host-probe.ts';
import { registerInventoryRoutes } from './hardware/inventory.routes.ts';
import { createInventoryService } from './hardware/inventory.service.ts';
import { BUILTIN_REFERENCE } from './images/builtin-image.ts';
import { createImageService, type ImageService } from './images/image.service.ts';
import { registerLogRoutes } from './logs/log.routes.ts';
import { createLogService } from './logs/log.service.ts';
import { registerMetricsRoutes } from './metrics/metrics.routes.ts';
import type { GpuLeaseState, Metrics } from './metrics/metrics.ts';
import { createPodNetworks } from './network/pod-network.ts';
import { createPodRecords } from './pods/pod.records.ts';
import { registerPodRoutes } from './pods/pod.routes.ts';
import { createPodService } from './pods/pod.service.ts';
import { createPodSteps } from './pods/pod.steps.ts';
import { createPodSupervisor } from './pods/pod.supervisor.ts';
import type { HostLimits } from './pods/policy.ts';
import { createReconcile, RECONCILE_INTERVAL_MS } from './pods/reconcile.job.ts';
import { createPortService, type PortRange } from './ports/port.service.ts';
import type { PortProbe } from './ports/port-probe.ts';
import { createLeaseStore, type LeaseStore } from './store/lease.store.ts';
import { createPodStore } from './store/pod.store.ts';
import { createReadiness } from './system/readiness.ts';
import { registerSystemRoutes } from './system/system.routes.ts';
import { registerVerifyRoutes } from './verify/verify.routes.ts';
import { createVerifyService } from './verify/verify.service.ts';

export type AgentPorts = {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  database: DatabaseSync;
  engine: ContainerEngine;
  gpuDriver: GpuDriver;
  gpus: GpuSource;
  hostProbe: HostProbe;
  probePort: PortProbe;
  /** Who may call. */
  auth: Auth;
  metrics: Metrics;
  portRange: PortRange;
  busyboxPath: string;
  host: HostLimits & { bootMs: number };
};

export type Agent = ReturnType<typeof createAgent>;

const BODY_LIMIT_BYTES = 1024 * 1024;

/** Two agents may live in one process: nothing here is shared between calls. */
export function createAgent(ports: AgentPorts) {
  const { executorId, clock, random, log, database, engine, gpus, host, metrics } = ports;
  const leases = createLeaseStore(database);
  const records = createPodRecords({ database, pods: createPodStore(database), clock });
  const portLeases = createPortService({
    leases,
    probe: ports.probePort,
    clock,
    range: ports.portRange,
  });
  const gpuLeases = createGpuLeases({ leases, gpus });
  const images = createImageService({ engine, busyboxPath: ports.busyboxPath });
  const networks = createPodNetworks({ engine, executorId });
  const pulls = new Map<string, PullProgress>();
  let unknownContainers = 0;

  const steps = createPodSteps({
    executorId,
    engine,
    records,
    images,
    ports: portLeases,
    gpuLeases,
    gpuMode: gpus.gpuMode,
    networks,
    clock,
    random,
    onPull(podId, progress) {
      if (progress === null) pulls.delete(podId);
      else pulls.set(podId, progress);
    },
  });
  const health = createEngineHealth(log);
  const common = { executorId, engine, health, records, ports: portLeases, clock, log };
  const hostBootMs = host.bootMs;
  const supervisor = createPodSupervisor({ ...common, steps, random, hostBootMs });
  const reconcile = createReconcile({
    ...common,
    gpuLeases,
    supervisor,
    hostBootMs,
    onUnknown() {
      unknownContainers += 1;
    },
  });
  const pods = createPodService({
    ...common,
    gpuLeases,
    gpuMode: gpus.gpuMode,
    supervisor,
    host,
    pullOf: (podId) => pulls.get(podId) ?? null,
    engineAway: health.awayBecause,
  });

  const logs = createLogService({
    clock,
    engine,
    podLogSource: async (podId) => {
      const row = records.get(podId);
      return row === null ? null : { containerId: row.container_id, phase: row.phase };
    },
  });
  const verify = createVerifyService({
    clock,
    random,
    executorId,
    engine,
    gpu: ports.gpuDriver,
    ensureBuiltinImage: () => builtinImage(images),
  });
  const inventory = createInventoryService({
    clock,
    executorId,
    engine,
    gpu: ports.gpuDriver,
    host: ports.hostProbe,
    leasedBy: gpuLeases.holderOf,
    ports: () => ({ ...ports.portRange, free: portLeases.freeCount() }),
    gpuRuntimeTried: verify.gpuRuntimeTried,
    onCollected: metrics.collected,
  });

  const server = createServer(ports);
  registerPodRoutes(server, pods);
  registerLogRoutes(server, { logs });
  registerInventoryRoutes(server, { inventory });
  registerVerifyRoutes(server, { verify });
  registerMetricsRoutes(server, { metrics });
  registerSystemRoutes(server, {
    executorId,
    startedMs: clock.now(),
    simulated: gpus.gpuMode() === 'simulated',
    readiness: createReadiness(clock, {
      docker: { required: true, check: () => engine.ping().then(() => 'answers') },
      database: { required: true, check: async () => `${records.list().length} pods` },
      gpu: { required: false, check: () => describeGpus(ports.gpuDriver) },
    }),
  });

  const stopping = new AbortController();
  let stopLoops = async () => {};

  return {
    server,
    pods,
    images,
    portLeases,
    gpuLeases,
    reconcile,
    health,
    /** Containers of ours that were found without a pod, since the start. */
    unknownContainers: () => unknownContainers,
    /** Starts the loops; never waits for the engine. Listening is the caller's. */
    start(): void {
      verify
        .removeStaleProbes()
        .catch((error: unknown) =>
          log.warn({ detail: messageOf(error) }, 'probes of an earlier run may be left'),
        );
      const loop = startLoop({
        clock,
        intervalMs: RECONCILE_INTERVAL_MS,
        async run() {
          await reconcile.runOnce();
          metrics.setPods(records.list().map((row) => row.phase));
          metrics.setGpuLeases(await gpuLeaseStates(ports.gpuDriver, leases));
        },
        onError: (error) => log.error({ err: error }, 'reconcile failed'),
      });
      const events = reconcile.followEvents(stopping.signal);
      stopLoops = async () => {
        await Promise.all([loop.stop(), events]);
      };
    },
    /** Ends requests, loops and workers; pods keep running. */
    async stop(): Promise<void> {
      stopping.abort();
      logs.close();
      await server.close();
      await Promise.all([stopLoops(), supervisor.stop()]);
      metrics.close();
    },
  };
}

function createServer({ log, clock, random, auth }: AgentPorts): HttpServer {
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    verifyBody: auth.verifyBody,
  });
  registerAuth(server, auth);
  return server;
}

/** A few words for /readyz; throws when the GPUs cannot be read. */
async function describeGpus(driver: GpuDriver): Promise<string> {
  const { devices, error } = await driver.read();
  if (error !== null) throw new Error(error);
  return `${devices.length} ${driver.kind}`;
}

/** The id of the image that needs no registry. */
async function builtinImage(images: ImageService): Promise<string> {
  const wanted = { reference: BUILTIN_REFERENCE };
  const { imageId } = await images.ensure(wanted, () => {}, new AbortController().signal);
  return imageId;
}

async function gpuLeaseStates(driver: GpuDriver, leases: LeaseStore): Promise<GpuLeaseState[]> {
  const states = new Map(leases.list('gpu').map((lease) => [lease.key, lease.state]));
  const { devices } = await driver.read();
  return devices.map(({ uuid }) => {
    const state = states.get(uuid);
    return { uuid, state: state === 'held' || state === 'dirty' ? state : 'free' };
  });
}
