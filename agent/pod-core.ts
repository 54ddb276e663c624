/** Everything that keeps pods as they are wanted, put together: stores, leases, images, workers, reconcile. */
import type { Orphan } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { createNotebookService } from './access/notebook/notebook.service.ts';
import { createNotebookStore } from './access/notebook/notebook.store.ts';
import type { GatewayLink } from './access/ssh/gateway-link.ts';
import type { KeyFolders } from './access/ssh/key-folders.ts';
import { createOwnSshd, createReadBanner } from './access/ssh/own-sshd.job.ts';
import { createSshService } from './access/ssh/ssh.service.ts';
import { createSshStore } from './access/ssh/ssh.store.ts';
import { holdsPod } from './backups/operation.state.ts';
import { createOperationStore } from './backups/operation.store.ts';
import type { ContainerEngine } from './containers/engine/engine.ts';
import { createEngineHealth } from './containers/engine/engine-health.ts';
import type { ExecEngine } from './containers/engine/exec.ts';
import type { EndLeftoverTask } from './containers/engine/leftover-task.ts';
import { BUILTIN_REFERENCE } from './containers/images/builtin-image.ts';
import type { ImageService } from './containers/images/image.service.ts';
import { createImageCore } from './containers/images/image-core.ts';
import type { DiskMarks } from './containers/images/image-gc.plan.ts';
import { createFirewallGuard } from './containers/network/firewall.job.ts';
import type { Firewall } from './containers/network/firewall.ts';
import { createPodNetworks } from './containers/network/pod-network.ts';
import type { Cidr } from './containers/network/subnets.ts';
import { createVolumeService } from './containers/volumes/volume.service.ts';
import { createVolumeStore } from './containers/volumes/volume.store.ts';
import { createLeaseStore } from './leases/lease.store.ts';
import { createPortService, type PortRange } from './leases/port.service.ts';
import type { PortProbe } from './leases/port-probe.ts';
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
import { createPodStore, type PodRow } from './pods/pod.store.ts';
import { createPodSupervisor } from './pods/pod.supervisor.ts';
import { createPodData } from './pods/pod-data.ts';
import { createPodHold } from './pods/pod-hold.ts';
import { createPodPulls } from './pods/pod-pulls.ts';
import { createPodVolumes } from './pods/pod-volumes.ts';
import type { HostLimits } from './pods/policy.ts';
import { createReconcile } from './pods/reconcile.job.ts';
import { type LaunchStage, timedSteps } from './pods/timed-steps.ts';
import { createVolumeWatch } from './pods/volume-watch.job.ts';

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
