/**
 * The container engine as the agent needs it. The contract suite in test/contract runs against every
 * implementation: dockerode on a real engine, and the in-memory fake.
 *
 * Every method takes its own deadline from the implementation and rejects with EngineError only.
 */
import type { PullProgress, RegistryAuth } from '#shared/api/agent/images.ts';

/** Labels of every object that we create; an object without `managed` is never touched. */
export const LABELS = {
  managed: 'io.podwright.managed',
  executor: 'io.podwright.executor',
  kind: 'io.podwright.kind',
  pod: 'io.podwright.pod',
  generation: 'io.podwright.generation',
  specHash: 'io.podwright.spec-hash',
  /** Of a data volume: where it lies in the pod. */
  mountPath: 'io.podwright.mount-path',
  /** Of a copy of a volume that outlives pods: whose, and how many bytes it may hold. */
  volume: 'io.podwright.volume',
  volumeLimit: 'io.podwright.volume-limit',
  /** Of everything that a build makes: which one it was. */
  build: 'io.podwright.build',
  /** Of the agent's own container, put there by whoever made it: which executor's. Only such a one is ever replaced. */
  agent: 'io.podwright.agent',
  /** Of one that an update made: which manifest's. */
  release: 'io.podwright.release',
  /** Of the container that replaces it. */
  switcher: 'io.podwright.switcher',
} as const;

/**
 * - `unavailable`: the engine does not answer; nothing is known of its objects.
 * - `not_found`, `conflict` (name taken), `port_busy`, `device` (GPU request refused), `deadline`
 * - `task_left`: the runtime still has something of a container that does not run for the engine
 * - `subnet_taken`: another network of the engine has addresses in it
 * - `image_auth`, `image_not_found`, `image_rate_limited`, `image_no_space`, `image_stalled`,
 *   `image_unreachable`, `image_digest_mismatch`: pulls only
 * - `build`: a step of a Dockerfile failed
 * - `build_interrupted`: the engine failed during a build, by no fault of the Dockerfile that can be seen
 * - `refused`: anything else that the engine will not do; repeating will not help
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
  /** Empty keeps the image's. */
  entrypoint: readonly string[];
  command: readonly string[];
  environment: Record<string, string>;
  /** Our own bridge network, or null for no network at all. */
  network: string | null;
  /** TCP and UDP of each internal port are published on the host port. */
  ports: readonly { internal: number; host: number }[];
  /** Folders of the agent's own; a renter's spec can name none. */
  readOnlyMounts?: readonly { source: string; target: string }[];
  /** Named volumes, which are there already; new ones get what the image has at their path. */
  volumes?: readonly VolumeMount[];
  /** Its root file system cannot be written. */
  readOnlyRoot?: true;
  gpuUuids: readonly string[];
  /** Of the engine's runtimes; its default one when absent. */
  runtime?: string;
  limits: {
    cpuCores: number;
    /** Only these processors, and memory of these nodes, as the kernel writes sets. */
    cpus?: string;
    memoryNodes?: string;
    memoryBytes: number;
    shmBytes: number;
    pids: number;
    /** Of the root file system, by the kernel; engines refuse it on most file systems. */
    diskBytes?: number;
  };
  stopGraceSeconds: number;
  /** How much output is kept; the engine throws away what is older. */
  logFiles?: { maxBytes: number; count: number };
};

export type VolumeMount = {
  name: string;
  target: string;
  labels: Record<string, string>;
  /** What lies in it is its own: nothing of the image is put there, be it as empty as it is. */
  noCopy?: true;
};

/** Where a network lies: its IPv4 subnet, and its interface on the host (at most 15 characters). */
export type NetworkPlace = { subnet: string; bridgeName: string };

export type ContainerState = {
  id: string;
  name: string;
  labels: Record<string, string>;
  status: 'created' | 'running' | 'paused' | 'restarting' | 'exited' | 'dead' | 'removing';
  exitCode: number;
  oomKilled: boolean;
  /** The engine's words on why the last start failed; empty when it did not. */
  startError: string;
  /** 0 when it never ran. */
  startedMs: number;
  finishedMs: number;
  imageId: string;
  /** When it was made. */
  createdMs: number;
  /** Of its first process, on the engine's host; 0 while it does not run. */
  pid: number;
  /** Names of the networks that it is in; after a removal by force there may be none. */
  networks: readonly string[];
  /** The engine's file of its output, on the engine's host; empty when its log driver keeps no json-file. */
  logPath: string;
};

/** What a running container has used since its start, and of memory just now. */
export type ContainerUsage = {
  /** Of processors, nanoseconds. */
  cpuNanos: number;
  /** Without files that the kernel keeps in memory while nobody else needs it. */
  memoryBytes: number;
  /** With them. */
  memoryWithFilesBytes: number;
  /** Of no file, and of files, in use or not; null where the kernel does not tell. */
  residentBytes: number | null;
  cacheBytes: number | null;
  /** Through all its networks; null where it has none. */
  network: { receivedBytes: number; sentBytes: number } | null;
  /** From and to block devices, over all of them; null where the kernel does not tell. */
  blockIo: { readBytes: number; writtenBytes: number } | null;
  /** Its processes and their threads; null where the kernel does not tell. */
  tasks: number | null;
};

export type NetworkState = {
  id: string;
  name: string;
  labels: Record<string, string>;
  /** When it was made. */
  createdMs: number;
};

export type VolumeState = {
  name: string;
  labels: Record<string, string>;
  /** To the second. */
  createdMs: number;
  /** Its folder on the engine's host. */
  hostPath: string;
};

export type EngineInfo = {
  version: string;
  storageDriver: string;
  cgroupVersion: string;
  /** Names of the runtimes that the engine knows. */
  runtimes: readonly string[];
  /** Folder of the engine's data, for the free space of its disk. */
  rootDir: string;
  /** Containers get the engine's default system call filter. */
  seccomp: boolean;
};

export type ImageState = {
  id: string;
  repoDigests: readonly string[];
  sizeBytes: number;
  /** Instructions that run in every build on top of it. */
  onBuild: readonly string[];
};

export type PullOptions = {
  /** For the registry of the image. */
  auth?: RegistryAuth | undefined;
  onProgress(progress: PullProgress): void;
};

/** A build whose context is one file. */
export type BuildSpec = {
  /** A tar archive with the file `Dockerfile`. */
  context: AsyncIterable<Uint8Array>;
  /** The name that the image gets. */
  reference: string;
  /** The network of its steps; null for none. */
  network: string | null;
  /** Of each step. */
  limits: { cpuCores: number; memoryBytes: number; shmBytes: number };
};

/** A raw chunk of a container's output: one or several lines, or part of one. */
export type LogChunk = { stream: 'stdout' | 'stderr'; data: Uint8Array };

export type EngineEvent = { podId: string; containerId: string; action: string; timeMs: number };

export type ContainerEngine = {
  /** Resolves when the engine answers. */
  ping(): Promise<void>;
  info(): Promise<EngineInfo>;
  /** What images, containers, volumes and builds take of its disk. Slow: the engine walks the files. */
  engineDiskBytes(): Promise<number>;
  /** When the engine was last started, by its own clock; 0 when that cannot be told. */
  startedMs(): Promise<number>;

  /** Null when there is no such image. */
  inspectImage(reference: string): Promise<ImageState | null>;
  /** The digest that the registry has for `reference` now, if it lets this login have it; nothing is pulled. */
  resolveDigest(
    reference: string,
    auth: RegistryAuth | undefined,
    signal: AbortSignal,
  ): Promise<string>;
  /** Pulls `reference` (a tag, or `name@digest`) and reports progress; aborting ends the pull. */
  pullImage(reference: string, options: PullOptions, signal: AbortSignal): Promise<void>;
  /** Ids of the images that carry all of `labels`; `unused` leaves out those with a name or with children. */
  listImages(filter: { labels?: Record<string, string>; unused?: boolean }): Promise<string[]>;
  /**
   * Takes away the name `reference`, or the image of that id if it has none; the content goes with the
   * last name. Missing is success, `conflict`: a container was made from it, or another image builds on it.
   */
  removeImage(reference: string): Promise<void>;
  /** The new image's id. Fails with `build` when a step does; aborting ends the build. */
  buildImage(
    spec: BuildSpec,
    onOutput: (text: string) => void,
    signal: AbortSignal,
  ): Promise<string>;
  /** Makes an image from a root file system tar, for the built-in image that works offline. */
  importImage(
    tar: AsyncIterable<Uint8Array>,
    reference: string,
    changes: readonly string[],
  ): Promise<void>;

  /**
   * A bridge network of ours without IPv6. Created once per name; an existing one with our labels is
   * returned as it is, wherever it lies.
   */
  ensureNetwork(
    name: string,
    labels: Record<string, string>,
    place: NetworkPlace,
  ): Promise<{ id: string }>;
  /** Puts a running container into a network, where its ports are published. */
  connectNetwork(name: string, containerId: string): Promise<void>;
  /** The networks that carry all of `labels`. */
  listNetworks(labels: Record<string, string>): Promise<NetworkState[]>;
  /** Missing is success. */
  removeNetwork(nameOrId: string): Promise<void>;

  /** Once per name: one that has the labels already is left as it is. `conflict`: it is somebody else's. */
  createVolume(name: string, labels: Record<string, string>): Promise<void>;
  /** The named volumes that carry all of `labels`. */
  listVolumes(labels: Record<string, string>): Promise<VolumeState[]>;
  /** With all that lies in it. Missing is success; `conflict`: a container has it mounted, running or not. */
  removeVolume(name: string): Promise<void>;

  /** The new container's id. `conflict` when the name is taken. */
  createContainer(spec: ContainerSpec): Promise<string>;
  /** Already running is success. `port_busy` and `device` leave the container created. */
  startContainer(id: string): Promise<void>;
  /** SIGTERM, then SIGKILL after the grace. Stopped already or missing is success. */
  stopContainer(id: string, graceSeconds: number): Promise<void>;
  /** Removes it and its anonymous volumes, running or not. Missing is success. */
  removeContainer(id: string): Promise<void>;
  /** Null when missing. */
  inspectContainer(idOrName: string): Promise<ContainerState | null>;
  /** Bounds the processes of a running container. Missing is success. */
  limitPids(id: string, pids: number): Promise<void>;
  /** Bytes that it has written outside its volumes; null when missing. Slow: the engine walks the files. */
  containerDiskBytes(id: string): Promise<number | null>;
  /** Null when it is missing or does not run. */
  containerUsage(id: string): Promise<ContainerUsage | null>;
  /** All containers, in any state, that carry all of `labels`. */
  listContainers(labels: Record<string, string>): Promise<ContainerState[]>;
  /** Resolves with the exit code when the container is not running any more. */
  waitContainer(id: string, signal: AbortSignal): Promise<number>;

  /** Output with the engine's own time stamps, oldest first; `sinceMs` in milliseconds. */
  containerLogs(
    id: string,
    options: { tail: number | 'all'; follow: boolean; sinceMs?: number },
    signal: AbortSignal,
  ): AsyncIterable<LogChunk>;

  /**
   * Container events of objects with `labels` until the signal aborts or the engine goes away (then it
   * throws). `onOpen`: from now on none is missed.
   */
  events(
    labels: Record<string, string>,
    signal: AbortSignal,
    onOpen?: () => void,
  ): AsyncIterable<EngineEvent>;
};
