/** Everything that keeps pods as they are wanted, put together: stores, leases, images, workers, reconcile. */
import type { Orphan } from '#shared/agent-api/inventory.ts';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { DatabaseSync } from '#shared/sqlite.ts';
import { holdsPod } from './backups/operation.state.ts';
import type { ContainerEngine } from './docker/engine.ts';
import { createEngineHealth } from './docker/engine-health.ts';
import type { ExecEngine } from './docker/exec.ts';
import type { EndLeftoverTask } from './docker/leftover-task.ts';
import { BUILTIN_REFERENCE } from './images/builtin-image.ts';
import type { ImageService } from './images/image.service.ts';
import { createImageCore } from './images/image-core.ts';
import type { DiskMarks } from './images/image-gc.plan.ts';
import { createFirewallGuard } from './network/firewall.job.ts';
import type { Firewall } from './network/firewall.ts';
import { createPodNetworks } from './network/pod-network.ts';
import type { Cidr } from './network/subnets.ts';
import { createNotebookService } from './notebook/notebook.service.ts';
import { createDiskQuotaProbe } from './pods/disk-quota.ts';
import { createDiskStop } from './pods/disk-stop.ts';
import { createDiskWatch } from './pods/disk-watch.job.ts';
import type { FolderBytes, FolderEntries } from './pods/folder-bytes.ts';
import { createGpuCore, type GpuPorts } from './pods/gpu-core.ts';
import { MOUNT_POINT } from './pods/mount-point.ts';
import { createOrphanSweep } from './pods/orphans.job.ts';
import { partsOf } from './pods/pod.change.ts';
import { createPodFacts } from './pods/pod.facts.ts';
import { createLostPods } from './pods/pod.lost.ts';
import { specOf } from './pods/pod.record.ts';
import { createPodRecords } from './pods/pod.records.ts';
import { createPodService } from './pods/pod.service.ts';
import { createPodSteps } from './pods/pod.steps.ts';
import { createPodSupervisor } from './pods/pod.supervisor.ts';
import { createPodData } from './pods/pod-data.ts';
import { createPodHold } from './pods/pod-hold.ts';
import { createPodPulls } from './pods/pod-pulls.ts';
import { createPodVolumes } from './pods/pod-volumes.ts';
import type { HostLimits } from './pods/policy.ts';
import { createReconcile } from './pods/reconcile.job.ts';
import { type LaunchStage, timedSteps } from './pods/timed-steps.ts';
import { createPortService, type PortRange } from './ports/port.service.ts';
import type { PortProbe } from './ports/port-probe.ts';
import { createReadBanner } from './ssh/banner.ts';
import type { GatewayLink } from './ssh/gateway-link.ts';
import type { KeyFolders } from './ssh/key-folders.ts';
import { createOwnSshd } from './ssh/own-sshd.job.ts';
import { createSshService } from './ssh/ssh.service.ts';
import { createLeaseStore } from './store/lease.store.ts';
import { createNotebookStore } from './store/notebook.store.ts';
import { createOperationStore } from './store/operation.store.ts';
import { createPodStore, type PodRow } from './store/pod.store.ts';
import { createSshStore } from './store/ssh.store.ts';
import { createVolumeStore } from './store/volume.store.ts';
import { createVolumeService } from './volumes/volume.service.ts';
import { createVolumeWatch } from './volumes/volume-watch.job.ts';

export type PodCorePorts = GpuPorts & {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  database: DatabaseSync;
  engine: ContainerEngine;
  endLeftoverTask: EndLeftoverTask;
  /** Programs inside pods; asked for when first needed. */
  execEngine(): Promise<ExecEngine>;
  probePort: PortProbe;
  portRange: PortRange;
  /** Where pods' subnets come from. */
  subnetPool: Cidr;
  firewall: Firewall;
  /** True: no pod starts without the firewall's rules. */
  firewallRequired: boolean;
  busyboxPath: string;
  /** 32 bytes of this agent's own, for secrets at rest. */
  secret: Uint8Array;
  /** Where the output of builds is kept. */
  buildsFolder: string;
  /** `bootId` is empty where the kernel does not tell. */
  host: HostLimits & { bootMs: number; bootId: string };
  gatewayLink: GatewayLink;
  /** Keys for pods that bring their own SSH server. */
  keyFolders: KeyFolders;
  /** Holds the sftp-server that pods get mounted; null when this host has none. */
  sftpFolder: string | null;
  /** What lies in volumes of pods. */
  folderBytes: FolderBytes;
  folderEntries: FolderEntries;
  /** Percent of the engine's disk that is in use; when images go because of it. */
  diskPercent(): Promise<number>;
  imageMarks: DiskMarks;
  /** An unused image is gone. */
  onImageRemoved(bytes: number): void;
  /** A pull has brought so many bytes. */
  onPulled(bytes: number): void;
  /** A step on the way to a running pod has come to its end. */
  onLaunchStep(stage: LaunchStage, tookMs: number): void;
  /** The kernel ended a process of a pod for want of memory. */
  onOom(podId: string): void;
  /** A pass over all pods is over; `failure` null: it did its work. */
  onReconciled(tookMs: number, failure: 'engine_away' | 'internal' | null): void;
  /** How many objects in the engine belong to no pod, by kind. */
  onOrphans(counts: Record<Orphan['kind'], number>): void;
  /** That many lines of the firewall's rules were not as we had left them. */
  onFirewallDrift(lines: number): void;
};

export type PodCore = ReturnType<typeof createPodCore>;

/** Nothing runs until `supervisor` is woken or `reconcile` is run. */
export function createPodCore(ports: PodCorePorts) {
  const { executorId, clock, random, log, database, engine, gpus, host } = ports;
  const health = createEngineHealth({ engine, clock, log });
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
  const readBanner = createReadBanner(clock);
  const ownSshd = createOwnSshd({ records, ports: portLeases, readBanner, clock });
  const ssh = createSshService({
    records,
    ports: portLeases,
    keyFolders: ports.keyFolders,
    ownSshd,
    store: createSshStore(database),
    link: ports.gatewayLink,
    sftp: ports.sftpFolder !== null,
    random,
    clock,
    log,
  });
  const gpu = createGpuCore({ ...ports, leases, records });
  const { gpuLeases } = gpu;
  const firewall = createFirewallGuard({
    firewall: ports.firewall,
    required: ports.firewallRequired,
    clock,
    log,
    onDrift: ports.onFirewallDrift,
  });
  const pool = ports.subnetPool;
  const networks = createPodNetworks({ engine, executorId, leases, pool, firewall });
  const volumes = createPodVolumes({ engine, executorId });
  const imageCore = createImageCore({
    ...ports,
    networkOf: networks.ensure,
    marks: ports.imageMarks,
    onRemoved: ports.onImageRemoved,
    usedByPods: () => liveRows().flatMap(imagesOf),
    buildKeysOfPods: () =>
      liveRows()
        .flatMap(buildKeysOf)
        .filter((key) => key !== null),
  });
  const liveRows = () => records.list().filter((row) => row.phase !== 'removed');
  const imagesOf = (row: PodRow) => partsOf(row).flatMap(imageCore.podImages.usedBy);
  const buildKeyOf = (row: PodRow) => imageCore.podImages.buildKeyOf(row.id, row);
  const buildKeysOf = (row: PodRow) =>
    partsOf(row).map((part) => imageCore.podImages.buildKeyOf(row.id, part));
  const { images, logins } = imageCore;
  const ensureBuiltinImage = () => builtinImage(images);
  const diskQuota = createDiskQuotaProbe({ engine, executorId, random, ensureBuiltinImage });
  const { folderBytes, folderEntries } = ports;
  const diskStop = createDiskStop({ engine, records });
  const diskWatch = createDiskWatch({
    ...{ engine, records, quota: diskQuota, volumes, folderBytes, diskStop, clock, log },
  });
  const operations = createOperationStore(database);
  const lastingVolumes = createVolumeService({
    ...{ executorId, engine, clock, log },
    store: createVolumeStore(database),
    podsWith: (id) =>
      liveRows()
        .filter((row) => specOf(row).volume?.id === id)
        .toSorted((a, b) => a.created_ms - b.created_ms)
        .map((row) => row.id),
    workOn: (id) => operations.activeOf(id)?.kind ?? null,
    restoredBytes(id) {
      const last = operations.lastOf(id);
      return (last?.kind === 'restore' ? last.progress.processed_bytes : null) ?? 0;
    },
  });
  const volumeWatch = createVolumeWatch({
    ...{ volumes: lastingVolumes, records, folderBytes, folderEntries, stop: diskStop, clock, log },
  });
  const { onPulled } = ports;
  const pulls = createPodPulls({ clock, onPulled, livePods: () => liveRows().map(({ id }) => id) });
  const onPull = pulls.note;

  const { bootId } = host;
  const podSteps = createPodSteps({
    endLeftoverTask: ports.endLeftoverTask,
    bootId,
    executorId,
    engine,
    records,
    images: imageCore.podImages,
    ports: portLeases,
    gpuLeases,
    gpuMode: gpus.gpuMode,
    placeOf: gpu.placeOf,
    networks,
    volumes,
    lastingVolumes,
    diskQuota,
    readOnlyMounts:
      ports.sftpFolder === null ? [] : [{ source: ports.sftpFolder, target: MOUNT_POINT }],
    keyMounts: ssh.keyMounts,
    clock,
    random,
    onPull,
    ssh,
  });
  const steps = timedSteps(podSteps, clock, ports.onLaunchStep);
  const isHeld = (podId: string) => holdsPod(operations.activeOf(podId));
  const factsOf = createPodFacts({
    ...{ ports: portLeases, gpuLeases, ssh, clock, bootId, health, isHeld },
  });
  const common = { executorId, engine, health, records, ports: portLeases, clock, log, factsOf };
  const supervisor = createPodSupervisor({
    ...common,
    steps,
    images: imageCore.podImages,
    random,
    onPull,
  });
  const reconcile = createReconcile({
    ...common,
    supervisor,
    onOom: ports.onOom,
    onRun: ports.onReconciled,
  });
  const orphans = createOrphanSweep({ ...common, onSwept: ports.onOrphans });
  const notebooks = createNotebookService({
    execEngine: ports.execEngine,
    store: createNotebookStore(database),
    records,
    ports: portLeases,
    clock,
    log,
  });
  const service = createPodService({
    ...common,
    lost: createLostPods(common),
    gpuLeases,
    gpuMode: gpus.gpuMode,
    supervisor,
    host,
    pulls,
    engineAway: health.awayBecause,
    diskOf: diskWatch.conditionOf,
    gpuHealthOf: gpu.gpuWatch.conditionOf,
    ssh,
    logins,
    notebookOf: notebooks.viewOf,
  });

  return {
    service,
    operations,
    hold: createPodHold({ ...common, supervisor, isHeld }),
    ssh,
    ownSshd,
    notebooks,
    supervisor,
    reconcile,
    images,
    imageCore,
    pulls,
    /** By what the log of its image's build goes, if it is built here. */
    buildKeyOf,
    leases,
    portLeases,
    ...gpu,
    firewall,
    diskQuota,
    diskWatch,
    lastingVolumes,
    volumeWatch,
    orphans,
    dataRootsOf: createPodData({ records, volumes }),
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
