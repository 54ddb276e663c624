/** Composition root of the agent: ports in, one listening-ready server and its loops out. */
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import type { PullProgress } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import type { Log } from '#shared/log.ts';
import { startLoop } from '#shared/loop.ts';
import type { Random } from '#shared/random.ts';
import type { DatabaseSync } from '#shared/sqlite.ts';
import type { ContainerEngine } from './docker/engine.ts';
import { createEngineHealth } from './docker/engine-health.ts';
import { createGpuLeases, type GpuSource } from './gpu/gpu-lease.ts';
import { createImageService } from './images/image.service.ts';
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
import { createLeaseStore } from './store/lease.store.ts';
import { createPodStore } from './store/pod.store.ts';

/** Who may call: the first check runs before any work, the second with the body's exact bytes. */
export type AgentAuth = {
  onRequest: onRequestAsyncHookHandler;
  verifyBody(request: FastifyRequest): Promise<void>;
};

export type AgentPorts = {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  database: DatabaseSync;
  engine: ContainerEngine;
  gpus: GpuSource;
  probePort: PortProbe;
  auth: AgentAuth;
  portRange: PortRange;
  busyboxPath: string;
  host: HostLimits & { bootMs: number };
};

export type Agent = ReturnType<typeof createAgent>;

const BODY_LIMIT_BYTES = 1024 * 1024;

/** Two agents may live in one process: nothing here is shared between calls. */
export function createAgent(ports: AgentPorts) {
  const { executorId, clock, random, log, database, engine, gpus, host } = ports;
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

  const server = createServer(ports);
  registerPodRoutes(server, pods);

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
      const loop = startLoop({
        clock,
        intervalMs: RECONCILE_INTERVAL_MS,
        run: () => reconcile.runOnce(),
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
      await server.close();
      await Promise.all([stopLoops(), supervisor.stop()]);
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
  server.addHook('onRequest', auth.onRequest);
  return server;
}
