/** Schemas of the engine's responses and their conversion to the port's types. */
import { z } from 'zod';
import { ImageDigest } from '#shared/api/agent/pod.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import {
  type ContainerLayers,
  type ContainerMount,
  type ContainerState,
  type ContainerUsage,
  type EngineEvent,
  type EngineInfo,
  LABELS,
  type NetworkState,
  type VolumeState,
} from './engine.ts';

const Labels = z
  .record(z.string(), z.string())
  .nullish()
  .transform((labels) => labels ?? {});

/** An engine timestamp in milliseconds; the year 1, which means never, becomes 0. */
const Time = z.string().transform((text) => Math.max(0, parseIsoTime(text) ?? 0));

export const Anything = z.unknown();
export const CreatedAnswer = z.object({ Id: z.string() });
export const WaitAnswer = z.object({ StatusCode: z.int() });

export const InfoAnswer = z
  .object({
    ServerVersion: z.string(),
    Driver: z.string(),
    CgroupVersion: z.string().default('1'),
    Runtimes: z.record(z.string(), z.unknown()).nullish(),
    DockerRootDir: z.string(),
    SecurityOptions: z.array(z.string()).nullish(),
  })
  .transform(
    (info): EngineInfo => ({
      version: info.ServerVersion,
      storageDriver: info.Driver,
      cgroupVersion: info.CgroupVersion,
      runtimes: Object.keys(info.Runtimes ?? {}),
      rootDir: info.DockerRootDir,
      seccomp: info.SecurityOptions?.some((option) => /\bname=seccomp\b/.test(option)) ?? false,
    }),
  );

const Sized = z.object({ Size: z.number().nullish() });

/** Disk use in bytes from the engine's `docker system df`. LayersSize counts shared layers once. */
export const DiskAnswer = z
  .object({
    LayersSize: z.number(),
    Containers: z.array(z.object({ SizeRw: z.number().nullish() })).nullish(),
    Volumes: z.array(z.object({ UsageData: Sized.nullish() })).nullish(),
    BuildCache: z.array(Sized).nullish(),
  })
  .transform((disk): number => {
    const parts = [
      disk.LayersSize,
      ...(disk.Containers ?? []).map(({ SizeRw }) => SizeRw ?? 0),
      // The size is -1 if the engine does not know it.
      ...(disk.Volumes ?? []).map(({ UsageData }) => Math.max(0, UsageData?.Size ?? 0)),
      ...(disk.BuildCache ?? []).map(({ Size }) => Size ?? 0),
    ];
    return parts.reduce((sum, bytes) => sum + bytes, 0);
  });

export const ImageAnswer = z
  .object({
    Id: z.string(),
    RepoDigests: z.array(z.string()).nullish(),
    Size: z.number(),
    Config: z
      .object({ OnBuild: z.array(z.string()).nullish(), User: z.string().nullish() })
      .nullish(),
  })
  .transform((image) => ({
    id: image.Id,
    repoDigests: image.RepoDigests ?? [],
    sizeBytes: image.Size,
    onBuild: image.Config?.OnBuild ?? [],
    user: image.Config?.User ?? '',
  }));

export const ImageListAnswer = z
  .array(z.object({ Id: z.string() }))
  .transform((images) => images.map(({ Id }) => Id));

export const DistributionAnswer = z
  .object({ Descriptor: z.object({ digest: ImageDigest }) })
  .transform(({ Descriptor }) => Descriptor.digest);

export const NetworkAnswer = z
  .object({ Id: z.string(), Name: z.string(), Labels, Created: Time.default(0) })
  .transform(
    ({ Id, Name, Labels: labels, Created }): NetworkState => ({
      id: Id,
      name: Name,
      labels,
      createdMs: Created,
    }),
  );

export const VolumeAnswer = z
  .object({
    Name: z.string(),
    Labels,
    CreatedAt: Time.default(0),
    Mountpoint: z.string(),
  })
  .transform(
    ({ Name, Labels: labels, CreatedAt, Mountpoint }): VolumeState => ({
      name: Name,
      labels,
      createdMs: CreatedAt,
      hostPath: Mountpoint,
    }),
  );
export const VolumeListAnswer = z
  .object({ Volumes: z.array(VolumeAnswer).nullish() })
  .transform(({ Volumes }) => Volumes ?? []);

/** The size is absent if the container has written nothing. */
export const ContainerSizeAnswer = z.object({ SizeRw: z.number().default(0) });
/** Layers of the storage driver overlay2. Other storage drivers report other data, or none. */
const OverlayData = z
  .object({ UpperDir: z.string().min(1), WorkDir: z.string().min(1), LowerDir: z.string().min(1) })
  .transform(
    ({ UpperDir, WorkDir, LowerDir }): ContainerLayers => ({
      upper: UpperDir,
      work: WorkDir,
      lower: LowerDir.split(':'),
    }),
  );
const MountAnswer = z
  .object({ Type: z.string(), Source: z.string().default(''), Destination: z.string() })
  .transform(
    ({ Type, Source, Destination }): ContainerMount => ({
      target: Destination.replace(/(?<=.)\/+$/, ''),
      volumeFolder: Type === 'volume' && Source !== '' ? Source : null,
    }),
  );
export const ContainerFilesAnswer = z
  .object({
    GraphDriver: z.object({ Data: z.unknown() }).nullish(),
    Mounts: z.array(MountAnswer).nullish(),
  })
  .transform(({ GraphDriver, Mounts }) => ({
    layers: OverlayData.safeParse(GraphDriver?.Data).data ?? null,
    mounts: Mounts ?? [],
  }));
/** A port may be bound for TCP and UDP, each on IPv4 and IPv6. */
export const ContainerLaunchAnswer = z
  .object({
    Config: z.object({ Env: z.array(z.string()).nullish() }),
    HostConfig: z.object({
      PortBindings: z
        .record(z.string(), z.array(z.object({ HostPort: z.coerce.number().int() })).nullable())
        .nullish(),
    }),
  })
  .transform(({ Config, HostConfig }) => {
    const hostPorts = Object.entries(HostConfig.PortBindings ?? {}).flatMap(([port, bindings]) =>
      (bindings ?? []).map(({ HostPort }) => [Number.parseInt(port, 10), HostPort] as const),
    );
    const variables = (Config.Env ?? []).map((line): [string, string] => {
      const end = line.indexOf('=');
      return [line.slice(0, end), line.slice(end + 1)];
    });
    return {
      ports: [...new Map(hostPorts)].map(([internal, host]) => ({ internal, host })),
      environment: Object.fromEntries(variables),
    };
  });
export const ContainerListAnswer = z.array(z.object({ Id: z.string() }));

export const ContainerAnswer = z
  .object({
    Id: z.string(),
    Name: z.string(),
    Image: z.string(),
    Created: Time.default(0),
    LogPath: z.string().default(''),
    HostConfig: z.object({ LogConfig: z.object({ Type: z.string() }) }),
    Config: z.object({ Labels }),
    NetworkSettings: z.object({ Networks: z.record(z.string(), z.unknown()).nullish() }).nullish(),
    State: z.object({
      Status: z.enum(['created', 'running', 'paused', 'restarting', 'exited', 'dead', 'removing']),
      ExitCode: z.int(),
      OOMKilled: z.boolean(),
      Error: z.string(),
      Pid: z.int().nonnegative().default(0),
      StartedAt: Time,
      FinishedAt: Time,
    }),
  })
  .transform(
    ({
      Id,
      Name,
      Image,
      Created,
      LogPath,
      HostConfig,
      Config,
      State,
      NetworkSettings,
    }): ContainerState => ({
      id: Id,
      name: Name.replace(/^\//, ''),
      labels: Config.Labels,
      status: State.Status,
      exitCode: State.ExitCode,
      oomKilled: State.OOMKilled,
      startError: State.Error,
      startedMs: State.StartedAt,
      finishedMs: State.FinishedAt,
      imageId: Image,
      createdMs: Created,
      pid: State.Pid,
      networks: Object.keys(NetworkSettings?.Networks ?? {}),
      // With other log drivers, LogPath names a cache in another format.
      logPath: HostConfig.LogConfig.Type === 'json-file' ? LogPath : '',
    }),
  );

const NANOS_PER_MS = 1e6;

export const EventAnswer = z
  .object({
    Action: z.string(),
    Actor: z.object({ ID: z.string(), Attributes: z.record(z.string(), z.string()).default({}) }),
    timeNano: z.number(),
  })
  .transform(
    ({ Action, Actor, timeNano }): EngineEvent => ({
      podId: Actor.Attributes[LABELS.pod] ?? '',
      containerId: Actor.ID,
      action: Action,
      timeMs: Math.floor(timeNano / NANOS_PER_MS),
    }),
  );

const BlockIoEntry = z.object({ op: z.string(), value: z.number() });

/** Resource use of a container; null if it does not run, because the engine then returns empty figures. */
export const ContainerUsageAnswer = z
  .object({
    cpu_stats: z.object({ cpu_usage: z.object({ total_usage: z.number().default(0) }) }),
    memory_stats: z
      .object({ usage: z.number().optional(), stats: z.record(z.string(), z.number()).nullish() })
      .default({}),
    networks: z
      .record(z.string(), z.object({ rx_bytes: z.number(), tx_bytes: z.number() }))
      .nullish(),
    blkio_stats: z
      .object({ io_service_bytes_recursive: z.array(BlockIoEntry).nullish() })
      .nullish(),
    pids_stats: z.object({ current: z.number().optional() }).nullish(),
  })
  .transform(({ cpu_stats, memory_stats, networks, ...rest }): ContainerUsage | null => {
    const { usage, stats = null } = memory_stats;
    if (usage === undefined) return null;
    // The keys are those of cgroup v1 and v2. `docker stats` subtracts inactive files too.
    const files = stats?.['total_inactive_file'] ?? stats?.['inactive_file'] ?? 0;
    const blockIo = rest.blkio_stats?.io_service_bytes_recursive ?? null;
    return {
      cpuNanos: cpu_stats.cpu_usage.total_usage,
      memoryBytes: Math.max(0, usage - files),
      memoryWithFilesBytes: usage,
      residentBytes: stats?.['total_rss'] ?? stats?.['anon'] ?? null,
      cacheBytes: stats?.['total_cache'] ?? stats?.['file'] ?? null,
      network: trafficOf(Object.values(networks ?? {})),
      blockIo:
        blockIo === null
          ? null
          : { readBytes: bytesOf(blockIo, 'read'), writtenBytes: bytesOf(blockIo, 'write') },
      tasks: rest.pids_stats?.current ?? null,
    };
  });

function trafficOf(
  interfaces: readonly { rx_bytes: number; tx_bytes: number }[],
): ContainerUsage['network'] {
  if (interfaces.length === 0) return null;
  return {
    receivedBytes: interfaces.reduce((sum, { rx_bytes }) => sum + rx_bytes, 0),
    sentBytes: interfaces.reduce((sum, { tx_bytes }) => sum + tx_bytes, 0),
  };
}

/** Sums the bytes of an operation. Older engines capitalize the names of operations. */
function bytesOf(entries: readonly z.output<typeof BlockIoEntry>[], op: 'read' | 'write'): number {
  const ours = entries.filter((entry) => entry.op.toLowerCase() === op);
  return ours.reduce((sum, { value }) => sum + value, 0);
}
