/** Everything that keeps pods as they are wanted, put together: stores, leases, images, workers, reconcile. */
import type { PullProgress } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { DatabaseSync } from '#shared/sqlite.ts';
import type { ContainerEngine } from '../docker/engine.ts';
import { createEngineHealth } from '../docker/engine-health.ts';
import { createGpuLeases, type GpuSource } from '../gpu/gpu-lease.ts';
import { createImageService } from '../images/image.service.ts';
import { createPodNetworks } from '../network/pod-network.ts';
import { createPortService, type PortRange } from '../ports/port.service.ts';
import type { PortProbe } from '../ports/port-probe.ts';
import type { GatewayLink } from '../ssh/gateway-link.ts';
import { MOUNT_POINT } from '../ssh/mount-point.ts';
import { createSshService } from '../ssh/ssh.service.ts';
import { createLeaseStore } from '../store/lease.store.ts';
import { createPodStore } from '../store/pod.store.ts';
import { createSshStore } from '../store/ssh.store.ts';
import { createPodRecords } from './pod.records.ts';
import { createPodService } from './pod.service.ts';
import { createPodSteps } from './pod.steps.ts';
import { createPodSupervisor } from './pod.supervisor.ts';
import type { HostLimits } from './policy.ts';
import { createReconcile } from './reconcile.job.ts';

export type PodCorePorts = {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  database: DatabaseSync;
  engine: ContainerEngine;
  gpus: GpuSource;
  probePort: PortProbe;
  portRange: PortRange;
  busyboxPath: string;
  host: HostLimits & { bootMs: number };
  gatewayLink: GatewayLink;
  /** Holds the sftp-server that pods get mounted; null when this host has none. */
  sftpFolder: string | null;
  /** A container of ours was found that belongs to no pod. */
  onUnknownContainer(): void;
};

export type PodCore = ReturnType<typeof createPodCore>;

/** Nothing runs until `supervisor` is woken or `reconcile` is run. */
export function createPodCore(ports: PodCorePorts) {
  const { executorId, clock, random, log, database, engine, gpus, host } = ports;
  const leases = createLeaseStore(database);
  const records = createPodRecords({
    database,
    pods: createPodStore(database),
    clock,
    onWrite: () => ssh.publishSoon(),
  });
  const portLeases = createPortService({
    leases,
    probe: ports.probePort,
    clock,
    range: ports.portRange,
  });
  const ssh = createSshService({
    records,
    ports: portLeases,
    store: createSshStore(database),
    link: ports.gatewayLink,
    sftp: ports.sftpFolder !== null,
    random,
    log,
  });
  const gpuLeases = createGpuLeases({ leases, gpus });
  const images = createImageService({ engine, busyboxPath: ports.busyboxPath });
  const networks = createPodNetworks({ engine, executorId });
  const pulls = new Map<string, PullProgress>();

  const steps = createPodSteps({
    executorId,
    engine,
    records,
    images,
    ports: portLeases,
    gpuLeases,
    gpuMode: gpus.gpuMode,
    networks,
    readOnlyMounts:
      ports.sftpFolder === null ? [] : [{ source: ports.sftpFolder, target: MOUNT_POINT }],
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
    onUnknown: ports.onUnknownContainer,
  });
  const service = createPodService({
    ...common,
    gpuLeases,
    gpuMode: gpus.gpuMode,
    supervisor,
    host,
    pullOf: (podId) => pulls.get(podId) ?? null,
    engineAway: health.awayBecause,
    ssh,
  });

  return {
    service,
    ssh,
    supervisor,
    reconcile,
    images,
    leases,
    portLeases,
    gpuLeases,
    health,
    /** The rows themselves, for whatever else has to know of pods. */
    records,
  };
}
