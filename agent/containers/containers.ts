/** Composes the services that manage Docker objects: engine health, networks, firewall, volumes, images. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import type { LeaseStore } from '../leases/lease.store.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { ContainerEngine } from './engine/engine.ts';
import { createEngineHealth } from './engine/engine-health.ts';
import { BUILTIN_REFERENCE } from './images/builtin-image.ts';
import { type DiskMarks, IMAGE_GC_INTERVAL_MS } from './images/image-gc.job.ts';
import { createImages } from './images/images.ts';
import type { PodGeneration } from './images/pod-images.ts';
import { createFirewallGuard, FIREWALL_INTERVAL_MS, type Firewall } from './network/firewall.ts';
import { createPodNetworks } from './network/pod-network.ts';
import type { Cidr } from './network/subnets.ts';
import { createContainerFiles } from './volumes/container-files.ts';
import { createPodVolumes } from './volumes/pod-volumes.ts';
import { createVolumeService, type VolumeOperations } from './volumes/volume.service.ts';
import { createVolumeStore } from './volumes/volume.store.ts';

export type ContainersPorts = {
  executorId: string;
  clock: Clock;
  trust: Pick<ClockTrust, 'isSuspect'>;
  random: Random;
  log: Log;
  database: DatabaseSync;
  engine: ContainerEngine;
  /** Pool from which every pod network gets its subnet. */
  subnetPool: Cidr;
  firewall: Firewall;
  /** True: pods start only once the firewall rules are in place. */
  firewallRequired: boolean;
  busyboxPath: string;
  /** 32-byte key that encrypts secrets at rest. */
  secret: Uint8Array;
  /** Folder of build logs. */
  buildsFolder: string;
  /** Disk use in percent at which removal of unused images starts and stops. */
  imageMarks: DiskMarks;
  /** Percent of the engine's disk that is in use. */
  diskPercent(): Promise<number>;
  /** Called with the number of firewall rules that another program changed since the last check. */
  onFirewallDrift(lines: number): void;
  onImageRemoved(bytes: number): void;
};

/** Images and other objects in use by pods, derived from their rows. */
export type PodUsage = {
  /** All generations of all pods that are not removed. */
  generations(): readonly { podId: string; generation: PodGeneration }[];
  /** Ids of the pods that have the volume or will get it, oldest first. */
  podsWithVolume(id: string): readonly string[];
};

export type Containers = ReturnType<typeof createContainers>;

/** Starts no loops: the caller runs the returned `work`. */
export function createContainers(
  ports: ContainersPorts,
  deps: { leases: LeaseStore; podUsage: PodUsage; volumeOperations: VolumeOperations },
) {
  const { executorId, clock, log, database, engine } = ports;
  const { podUsage } = deps;
  const firewall = createFirewallGuard({
    firewall: ports.firewall,
    required: ports.firewallRequired,
    clock,
    log,
    onDrift: ports.onFirewallDrift,
  });
  const networks = createPodNetworks({
    engine,
    executorId,
    leases: deps.leases,
    pool: ports.subnetPool,
    firewall,
  });
  const images = createImages({
    ...ports,
    networkOf: networks.ensure,
    marks: ports.imageMarks,
    onRemoved: ports.onImageRemoved,
    usedByPods: () =>
      podUsage.generations().flatMap(({ generation }) => images.podImages.usedBy(generation)),
    buildKeysOfPods: () =>
      podUsage
        .generations()
        .map(({ podId, generation }) => images.podImages.buildKeyOf(podId, generation))
        .filter((key) => key !== null),
  });
  const work: PeriodicWork[] = [
    // First in the list, so that the rules are in place before any pod starts.
    { name: 'firewall', intervalMs: FIREWALL_INTERVAL_MS, run: () => firewall.runOnce() },
    { name: 'image clean-up', intervalMs: IMAGE_GC_INTERVAL_MS, run: () => images.gc.runOnce() },
  ];

  return {
    health: createEngineHealth({ engine, clock, log }),
    firewall,
    networks,
    images,
    podVolumes: createPodVolumes({ engine, executorId }),
    containerFiles: createContainerFiles({ engine }),
    persistentVolumes: createVolumeService({
      executorId,
      engine,
      clock,
      log,
      store: createVolumeStore(database),
      podsWith: podUsage.podsWithVolume,
      operations: deps.volumeOperations,
    }),

    /** Returns the id of the built-in image, creating the image if the engine does not have it. */
    async ensureBuiltinImage(): Promise<string> {
      const wanted = { reference: BUILTIN_REFERENCE };
      const { signal } = new AbortController();
      return (await images.images.ensure(wanted, () => {}, signal)).imageId;
    },
    work,
  };
}
