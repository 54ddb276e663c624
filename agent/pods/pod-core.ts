/** Everything that keeps pods as they are wanted, put together: stores, leases, images, workers, reconcile. */
import type { PullProgress } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { DatabaseSync } from '#shared/sqlite.ts';
import type { ContainerEngine } from '../docker/engine.ts';
import { createEngineHealth } from '../docker/engine-health.ts';
import { createGpuLeases, type GpuSource } from '../gpu/gpu-lease.ts';
import { BUILTIN_REFERENCE } from '../images/builtin-image.ts';
import { createImageService, type ImageService } from '../images/image.service.ts';
import { createFirewallGuard } from '../network/firewall.job.ts';
import type { Firewall } from '../network/firewall.ts';
import { createPodNetworks } from '../network/pod-network.ts';
import type { Cidr } from '../network/subnets.ts';
import { createPortService, type PortRange } from '../ports/port.service.ts';
import type { PortProbe } from '../ports/port-probe.ts';
import type { GatewayLink } from '../ssh/gateway-link.ts';
import { MOUNT_POINT } from '../ssh/mount-point.ts';
import { createSshService } from '../ssh/ssh.service.ts';
import { createLeaseStore } from '../store/lease.store.ts';
import { createPodStore } from '../store/pod.store.ts';
import { createSshStore } from '../store/ssh.store.ts';
import { createDiskQuotaProbe } from './disk-quota.ts';
import { createDiskWatch } from './disk-watch.job.ts';
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
  /** Where pods' subnets come from. */
  subnetPool: Cidr;
  firewall: Firewall;
  /** True: no pod starts without the firewall's rules. */
  firewallRequired: boolean;
  busyboxPath: string;
  host: HostLimits & { bootMs: number };
  gatewayLink: GatewayLink;
  /** Holds the sftp-server that pods get mounted; null when this host has none. */
  sftpFolder: string | null;
  /** A container of ours was found that belongs to no pod. */
  onUnknownContainer(): void;
  /** That many lines of the firewall's rules were not as we had left them. */
  onFirewallDrift(lines: number): void;
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
  const firewall = createFirewallGuard({
    firewall: ports.firewall,
    required: ports.firewallRequired,
    clock,
    log,
    onDrift: ports.onFirewallDrift,
  });
  const pool = ports.subnetPool;
  const networks = createPodNetworks({ engine, executorId, leases, pool, firewall });
  const ensureBuiltinImage = () => builtinImage(images);
  const diskQuota = createDiskQuotaProbe({ engine, executorId, random, ensureBuiltinImage });
  const diskWatch = createDiskWatch({ engine, records, quota: diskQuota, clock, log });
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
    diskQuota,
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
    diskOf: diskWatch.conditionOf,
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
    firewall,
    diskQuota,
    diskWatch,
    ensureBuiltinImage,
    health,
    /** The rows themselves, for whatever else has to know of pods. */
    records,
  };
}

/** The id of the image that needs no registry. */
async function builtinImage(images: ImageService): Promise<string> {
  const wanted = { reference: BUILTIN_REFERENCE };
  const { imageId } = await images.ensure(wanted, () => {}, new AbortController().signal);
  return imageId;
}
