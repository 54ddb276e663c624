/**
 * The container engine as the agent needs it. The contract suite in test/contract runs against every
 * implementation: dockerode on a real engine, and the in-memory fake.
 *
 * The implementation sets the deadlines. Every method rejects with EngineError only.
 */
import type { PullProgress, RegistryAuth } from '#shared/api/agent/images.ts';

/** Labels of every object that the agent creates. Objects without `managed` are never touched. */
export const LABELS = {
  managed: 'io.podwright.managed',
  executor: 'io.podwright.executor',
  kind: 'io.podwright.kind',
  pod: 'io.podwright.pod',
  generation: 'io.podwright.generation',
  specHash: 'io.podwright.spec-hash',
  /** Data volume: mount path in the pod. */
  mountPath: 'io.podwright.mount-path',
  /** Persistent volume: id of the volume, and its limit in bytes. */
  volume: 'io.podwright.volume',
  volumeLimit: 'io.podwright.volume-limit',
  /** Objects of a build: key of the build. */
  build: 'io.podwright.build',
  /** The agent's own container: id of the executor, set by the operator. Updates replace only such a container. */
  agent: 'io.podwright.agent',
  /** Container created by an update: id of the manifest. */
  release: 'io.podwright.release',
  /** Container that performs the replacement. */
  switcher: 'io.podwright.switcher',
} as const;

/**
 * - `unavailable`: the engine does not answer; nothing is known of its objects.
 * - `not_found`, `conflict` (name taken), `port_busy`, `device` (GPU request refused), `deadline`
 * - `task_left`: the runtime still has a task of a container that the engine reports as stopped
 * - `subnet_taken`: another network of the engine overlaps
 * - `image_auth`, `image_not_found`, `image_rate_limited`, `image_no_space`, `image_stalled`,
 *   `image_unreachable`, `image_digest_mismatch`: pulls only
 * - `build`: a step of a Dockerfile failed
 * - `build_interrupted`: the engine failed during a build
 * - `refused`: any other refusal; a retry does not help
 */
export type EngineErrorKind =
  | 'unavailable'
  | 'not_found'
  | 'conflict'
  | 'port_busy'
  | 'task_left'
  | 'subnet_taken'
  | 'device'
  | 'deadline'
  | 'image_auth'
  | 'image_not_found'
  | 'image_rate_limited'
  | 'image_no_space'
  | 'image_stalled'
  | 'image_unreachable'
  | 'image_digest_mismatch'
  | 'build'
  | 'build_interrupted'
  | 'refused';

export class EngineError extends Error {
  override name = 'EngineError';
  readonly kind: EngineErrorKind;
  constructor(kind: EngineErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}

export type ContainerSpec = {
  name: string;
  /** An image id or `reference@digest` that is present. */
  image: string;
  labels: Record<string, string>;
  /** Replaces the image's entrypoint; empty: uses the image's. */
  entrypoint: readonly string[];
  command: readonly string[];
  environment: Record<string, string>;
  /** Name of the pod's bridge network; null: no network. */
  network: string | null;
  /** Each internal port is published on its host port for TCP and UDP. */
  ports: readonly { internal: number; host: number }[];
  /** Folders of the agent. Renters' specs cannot add any. */
  readOnlyMounts?: readonly { source: string; target: string }[];
  /** Existing named volumes. The engine copies the image's files at the mount path into a volume that is empty. */
  volumes?: readonly VolumeMount[];
  /** Read-only root file system. */
  readOnlyRoot?: true;
  gpuUuids: readonly string[];
  /** Name of a container runtime; the engine's default if absent. */
  runtime?: string;
  limits: {
    cpuCores: number;
    /** CPU cores and memory nodes that the container may use, in the kernel's list format. */
    cpus?: string;
    memoryNodes?: string;
    memoryBytes: number;
    shmBytes: number;
    pids: number;
    /** Limit of the root file system, enforced by the kernel. Engines refuse it on most file systems. */
    diskBytes?: number;
  };
  stopGraceSeconds: number;
  /** Retained output in the engine's log files; the engine deletes older output. */
  logFiles?: { maxBytes: number; count: number };
};

export type VolumeMount = {
  name: string;
  target: string;
  labels: Record<string, string>;
  /** The engine copies no files of the image into the volume, even if it is empty. */
  noCopy?: true;
};

/** IPv4 subnet of a network and its interface on the host (at most 15 characters). */
export type NetworkPlace = { subnet: string; bridgeName: string };

export type ContainerState = {
  id: string;
  name: string;
  labels: Record<string, string>;
  status: 'created' | 'running' | 'paused' | 'restarting' | 'exited' | 'dead' | 'removing';
  exitCode: number;
  oomKilled: boolean;
  /** Error of the last start; empty if it did not fail. */
  startError: string;
  /** 0 when it never ran. */
  startedMs: number;
  finishedMs: number;
  imageId: string;
  createdMs: number;
  /** Process id of its first process on the host; 0 while it does not run. */
  pid: number;
  /** Names of its networks. Empty after a forced removal of its network. */
  networks: readonly string[];
  /** Log file on the engine's host; empty if the log driver is not json-file. */
  logPath: string;
};

/** Settings with which a container was created, for an agent that has lost its record of it. */
export type ContainerLaunch = {
  /** Published ports, each once. */
  ports: readonly { internal: number; host: number }[];
  environment: Readonly<Record<string, string>>;
};

/** Layers of a container's file system: folders on the engine's host. */
export type ContainerLayers = {
  /** Folder with what the container has changed, and the kernel's working folder for it. */
  upper: string;
  work: string;
  /** Folders of the image's layers, topmost first. */
  lower: readonly string[];
};

/** A volume, folder or file that is mounted in a container. */
export type ContainerMount = {
  target: string;
  /** The volume's folder on the engine's host; null for a folder or file of the agent or the engine. */
  volumeFolder: string | null;
};

/** Resource use of a running container: totals since its start, and its present memory. */
export type ContainerUsage = {
  /** CPU time in nanoseconds. */
  cpuNanos: number;
  /** Excludes page cache that the kernel can reclaim. */
  memoryBytes: number;
  /** Includes reclaimable page cache. */
  memoryWithFilesBytes: number;
  /** Anonymous memory, and page cache; null if the kernel does not report them. */
  residentBytes: number | null;
  cacheBytes: number | null;
  /** Sum over all its networks; null if it has none. */
  network: { receivedBytes: number; sentBytes: number } | null;
  /** Sum over all block devices; null if the kernel does not report it. */
  blockIo: { readBytes: number; writtenBytes: number } | null;
  /** Number of processes and threads; null if the kernel does not report it. */
  tasks: number | null;
};

export type NetworkState = {
  id: string;
  name: string;
  labels: Record<string, string>;
  createdMs: number;
};

export type VolumeState = {
  name: string;
  labels: Record<string, string>;
  /** Creation time, with a resolution of one second. */
  createdMs: number;
  /** Folder on the engine's host. */
  hostPath: string;
};

export type EngineInfo = {
  version: string;
  storageDriver: string;
  cgroupVersion: string;
  /** Names of the configured runtimes. */
  runtimes: readonly string[];
  /** Folder of the engine's data. */
  rootDir: string;
  /** True: containers get the engine's default system call filter. */
  seccomp: boolean;
};

export type ImageState = {
  id: string;
  repoDigests: readonly string[];
  sizeBytes: number;
  /** ONBUILD instructions of the image. */
  onBuild: readonly string[];
  /** USER of the image; empty: root. */
  user: string;
};

export type PullOptions = {
  /** Login at the image's registry. */
  auth?: RegistryAuth | undefined;
  onProgress(progress: PullProgress): void;
};

/** A build whose context is a single Dockerfile. */
export type BuildSpec = {
  /** A tar archive with the file `Dockerfile`. */
  context: AsyncIterable<Uint8Array>;
  /** Name of the new image. */
  reference: string;
  /** Network of the build steps; null: none. */
  network: string | null;
  /** Limits per step. */
  limits: { cpuCores: number; memoryBytes: number; shmBytes: number };
};

/** A chunk of a container's output: one or more lines, or part of a line. */
export type LogChunk = { stream: 'stdout' | 'stderr'; data: Uint8Array };

export type EngineEvent = { podId: string; containerId: string; action: string; timeMs: number };

export type ContainerEngine = {
  /** Resolves if the engine answers. */
  ping(): Promise<void>;
  info(): Promise<EngineInfo>;
  /** Bytes used by images, containers, volumes and builds. Slow: the engine walks the files. */
  engineDiskBytes(): Promise<number>;
  /** Time of the engine's last start by its own clock; 0 if unknown. */
  startedMs(): Promise<number>;

  /** Null when there is no such image. */
  inspectImage(reference: string): Promise<ImageState | null>;
  /** Returns the registry's present digest of `reference` if the login has access. Pulls nothing. */
  resolveDigest(
    reference: string,
    auth: RegistryAuth | undefined,
    signal: AbortSignal,
  ): Promise<string>;
  /** Pulls `reference` (a tag, or `name@digest`). The signal aborts the pull. */
  pullImage(reference: string, options: PullOptions, signal: AbortSignal): Promise<void>;
  /** Ids of images that carry all of `labels`; `unused` restricts them to images without names and children. */
  listImages(filter: { labels?: Record<string, string>; unused?: boolean }): Promise<string[]>;
  /**
   * Removes the name `reference`, or the unnamed image with that id. Removing the last name deletes the content.
   * Missing is success. `conflict`: a container uses the image, or another image is based on it.
   */
  removeImage(reference: string): Promise<void>;
  /** Returns the new image's id. Rejects with `build` if a step fails. The signal aborts the build. */
  buildImage(
    spec: BuildSpec,
    onOutput: (text: string) => void,
    signal: AbortSignal,
  ): Promise<string>;
  /** Creates an image from a tar archive of a root file system. */
  importImage(
    tar: AsyncIterable<Uint8Array>,
    reference: string,
    changes: readonly string[],
  ): Promise<void>;

  /**
   * Creates a bridge network without IPv6. An existing network with this name and these labels is returned unchanged,
   * whatever its subnet.
   */
  ensureNetwork(
    name: string,
    labels: Record<string, string>,
    place: NetworkPlace,
  ): Promise<{ id: string }>;
  /** Connects a running container to a network. The engine then publishes the container's ports there. */
  connectNetwork(name: string, containerId: string): Promise<void>;
  /** Networks that carry all of `labels`. */
  listNetworks(labels: Record<string, string>): Promise<NetworkState[]>;
  /** Missing is success. */
  removeNetwork(nameOrId: string): Promise<void>;

  /** An existing volume with these labels is left unchanged. `conflict`: the name belongs to another owner. */
  createVolume(name: string, labels: Record<string, string>): Promise<void>;
  /** Named volumes that carry all of `labels`. */
  listVolumes(labels: Record<string, string>): Promise<VolumeState[]>;
  /** Removes the volume with its data. Missing is success. `conflict`: a container, running or not, mounts it. */
  removeVolume(name: string): Promise<void>;

  /** Returns the new container's id. `conflict`: the name is taken. */
  createContainer(spec: ContainerSpec): Promise<string>;
  /** Already running is success. `port_busy` and `device` leave the container created. */
  startContainer(id: string): Promise<void>;
  /** Sends SIGTERM, then SIGKILL after the grace period. Already stopped or missing is success. */
  stopContainer(id: string, graceSeconds: number): Promise<void>;
  /** Removes the container, running or not, and its anonymous volumes. Missing is success. */
  removeContainer(id: string): Promise<void>;
  /** Null if missing. */
  inspectContainer(idOrName: string): Promise<ContainerState | null>;
  /** Limits the processes of a running container. Missing is success. */
  limitPids(id: string, pids: number): Promise<void>;
  /** Bytes written outside volumes; null if missing. Slow: the engine walks the files. */
  containerDiskBytes(id: string): Promise<number | null>;
  /**
   * File system of a container, the same for its lifetime; null if missing. `layers` is null if the engine does not
   * report overlay layers.
   */
  containerFiles(
    id: string,
  ): Promise<{ layers: ContainerLayers | null; mounts: readonly ContainerMount[] } | null>;
  /** Ports and variables with which a container was created; null if missing. */
  containerLaunch(id: string): Promise<ContainerLaunch | null>;
  /** Null if missing or not running. */
  containerUsage(id: string): Promise<ContainerUsage | null>;
  /** All containers, in any state, that carry all of `labels`. */
  listContainers(labels: Record<string, string>): Promise<ContainerState[]>;
  /** Resolves with the exit code when the container has ended. */
  waitContainer(id: string, signal: AbortSignal): Promise<number>;

  /** Output with the engine's timestamps, oldest first. */
  containerLogs(
    id: string,
    options: { tail: number | 'all'; follow: boolean; sinceMs?: number },
    signal: AbortSignal,
  ): AsyncIterable<LogChunk>;

  /**
   * Yields events of containers with `labels` until the signal aborts. Throws if the connection to the engine breaks.
   * `onOpen` is called when the stream is open; later events are not missed.
   */
  events(
    labels: Record<string, string>,
    signal: AbortSignal,
    onOpen?: () => void,
  ): AsyncIterable<EngineEvent>;
};
