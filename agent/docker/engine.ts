/**
 * The container engine as the agent needs it. The contract suite in test/contract runs against every
 * implementation: dockerode on a real engine, and the in-memory fake.
 *
 * Every method takes its own deadline from the implementation and rejects with EngineError only.
 */
import type { PullProgress } from '#shared/agent-api/pod.ts';

/** Labels of every object that we create; an object without `managed` is never touched. */
export const LABELS = {
  managed: 'io.podwright.managed',
  executor: 'io.podwright.executor',
  kind: 'io.podwright.kind',
  pod: 'io.podwright.pod',
  generation: 'io.podwright.generation',
  specHash: 'io.podwright.spec-hash',
} as const;

/**
 * - `unavailable`: the engine does not answer; nothing is known of its objects.
 * - `not_found`, `conflict` (name taken), `port_busy`, `device` (GPU request refused), `deadline`
 * - `subnet_taken`: another network of the engine has addresses in it
 * - `image_auth`, `image_not_found`, `image_rate_limited`, `image_no_space`, `image_stalled`,
 *   `image_unreachable`: pulls only
 * - `refused`: anything else that the engine will not do; repeating will not help
 */
export type EngineErrorKind =
  | 'unavailable'
  | 'not_found'
  | 'conflict'
  | 'port_busy'
  | 'subnet_taken'
  | 'device'
  | 'deadline'
  | 'image_auth'
  | 'image_not_found'
  | 'image_rate_limited'
  | 'image_no_space'
  | 'image_stalled'
  | 'image_unreachable'
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
  gpuUuids: readonly string[];
  limits: {
    cpuCores: number;
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
  /** The engine's file of its output, on the engine's host; empty when its log driver keeps no json-file. */
  logPath: string;
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

export type ImageState = { id: string; repoDigests: readonly string[]; sizeBytes: number };

/** A raw chunk of a container's output: one or several lines, or part of one. */
export type LogChunk = { stream: 'stdout' | 'stderr'; data: Uint8Array };

export type EngineEvent = { podId: string; containerId: string; action: string; timeMs: number };

export type ContainerEngine = {
  /** Resolves when the engine answers. */
  ping(): Promise<void>;
  info(): Promise<EngineInfo>;

  /** Null when there is no such image. */
  inspectImage(reference: string): Promise<ImageState | null>;
  /** Pulls `reference` (a tag, or `name@digest`) and reports progress; aborting ends the pull. */
  pullImage(
    reference: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<void>;
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
  /** Names of the networks that carry all of `labels`. */
  listNetworks(
    labels: Record<string, string>,
  ): Promise<{ id: string; name: string; labels: Record<string, string> }[]>;
  /** Missing is success. */
  removeNetwork(nameOrId: string): Promise<void>;

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
  /** Bytes that it has written outside its volumes; null when missing. Slow: the engine walks the files. */
  containerDiskBytes(id: string): Promise<number | null>;
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

  /** Container events of objects with `labels` until the signal aborts or the engine goes away (then it throws). */
  events(labels: Record<string, string>, signal: AbortSignal): AsyncIterable<EngineEvent>;
};
