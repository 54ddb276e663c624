/** Builds images from Dockerfiles, each once, in the network of the pod that needs it. */
import { type BaseImage, parseDockerfile } from '#shared/api/agent/dockerfile.ts';
import {
  type PullProgress,
  type RegistryAuth,
  registryAddressOf,
} from '#shared/api/agent/images.ts';
import type { PodSpec } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import { type ContainerEngine, EngineError } from '../engine/engine.ts';
import {
  buildContext,
  buildKey,
  buildLabels,
  buildText,
  builtReference,
  imageName,
} from './build-context.ts';
import { guardBuild } from './build-guard.ts';
import type { BuildLines, BuildLogs } from './build-log.ts';
import { BuildFailure, type BuildOutput, createBuildOutput } from './build-output.ts';
import { sweepBuild } from './build-sweep.ts';
import type { ImageReady, ImageService } from './image.service.ts';
import type { ImageStore } from './image.store.ts';
import type { RegistryLogins } from './registry-logins.ts';

export const MAX_PARALLEL_BUILDS = 2;
/** Deadline of a build from its first step to its last, in milliseconds. */
export const BUILD_TIMEOUT_MS = 3_600_000;
/** Disk limit of a build if the pod's spec has none. */
const DEFAULT_DISK_BYTES = 64 * 1024 ** 3;

export type BuildWanted = {
  podId: string;
  dockerfile: string;
  auth: RegistryAuth | undefined;
  limits: PodSpec['limits'];
};

/** `building` means that the base images are present and the build runs. */
export type BuildProgress = PullProgress | 'building';

export type BuildService = ReturnType<typeof createBuildService>;

export function createBuildService(ports: {
  executorId: string;
  engine: ContainerEngine;
  images: ImageService;
  store: ImageStore;
  logs: BuildLogs;
  logins: Pick<RegistryLogins, 'scopeOf'>;
  /** Creates the pod's network if it is missing and returns its name. */
  networkOf(podId: string): Promise<string>;
  clock: Clock;
  log: Log;
}) {
  const { executorId, engine, store, logs, clock, log } = ports;
  const slots = createSemaphore(MAX_PARALLEL_BUILDS);
  /** Builds of one key run one after the other, so that the second finds the image of the first. */
  const queues = new Map<string, { lock: ReturnType<typeof createSemaphore>; users: number }>();

  let sweeping: Promise<void> = Promise.resolve();

  async function inQueue<T>(key: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const queue = queues.get(key) ?? { lock: createSemaphore(1), users: 0 };
    queues.set(key, queue);
    queue.users += 1;
    try {
      return await queue.lock.run(work, signal);
    } finally {
      queue.users -= 1;
      if (queue.users === 0) queues.delete(key);
    }
  }

  async function findBuilt(reference: string): Promise<ImageReady | null> {
    if (store.get(reference) === null) return null;
    const present = await engine.inspectImage(reference);
    if (present === null) return null;
    finish(reference, present.id, present.sizeBytes);
    return { imageId: present.id, digest: null };
  }

  function finish(reference: string, imageId: string, sizeBytes: number): void {
    store.finish({ reference, imageId, sizeBytes, nowMs: clock.now() });
  }

  async function run(
    key: string,
    text: string,
    { podId, limits }: BuildWanted,
    lines: BuildLines,
    signal: AbortSignal,
  ): Promise<void> {
    const reference = builtReference(executorId, key);
    const network = await ports.networkOf(podId);
    const ended = new AbortController();
    const ending = clock.deadline(BUILD_TIMEOUT_MS, AbortSignal.any([signal, ended.signal]));
    const bounds = { pids: limits.pids, diskBytes: limits.disk_bytes ?? DEFAULT_DISK_BYTES };
    const guarding = guardBuild(ports, buildLabels(executorId, key), bounds, ending);
    const spec = {
      context: await buildContext(text),
      reference,
      network,
      limits: {
        cpuCores: limits.cpu_cores,
        memoryBytes: limits.memory_bytes,
        shmBytes: limits.shm_bytes,
      },
    };
    store.begin(reference, clock.now());
    try {
      await Promise.race([engine.buildImage(spec, lines.write, ending), guarding]);
      const built = await engine.inspectImage(reference);
      if (built === null) throw new BuildFailure('The image was removed right after it was built');
      finish(reference, built.id, built.sizeBytes);
    } catch (error) {
      if (ending.aborted && !signal.aborted) throw new BuildFailure(tooLong());
      throw error;
    } finally {
      ended.abort();
      guarding.catch(() => undefined);
    }
  }

  async function build(
    key: string,
    wanted: BuildWanted,
    onProgress: (progress: BuildProgress) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const parsed = parseDockerfile(wanted.dockerfile);
    if ('problem' in parsed) throw new BuildFailure(parsed.problem);
    const lines = logs.begin(key);
    let output: BuildOutput | null = null;
    try {
      const ids = await fetchBases(ports, parsed.images, wanted.auth, onProgress, signal);
      for (const [name, id] of ids) lines.write(`${name} is ${id}\n`);
      onProgress('building');
      const idOf = (image: BaseImage) => ids.get(imageName(image)) ?? '';
      const built = buildText(parsed, idOf, buildLabels(executorId, key));
      output = createBuildOutput(built);
      lines.useEdit(output.edit);
      await run(key, built.text, wanted, lines, signal);
    } catch (error) {
      lines.end();
      const failure = failureOf(error, output, lines);
      lines.write(`The build ended: ${messageOf(failure).split('\n', 1)[0]}\n`);
      throw failure;
    } finally {
      await logs.end(key);
      await sweepBuild(engine, buildLabels(executorId, key), clock).catch((error: unknown) =>
        log.warn(
          { detail: messageOf(error) },
          'removing the leftovers of a build failed; retried by the next sweep',
        ),
      );
    }
  }

  return {
    /** Key of the Dockerfile's log and image. */
    keyOf: (dockerfile: string, auth: RegistryAuth | undefined): string =>
      buildKey(dockerfile, ports.logins.scopeOf(auth)),
    /** Removes leftovers of earlier agent processes. Does nothing while a build runs. */
    async sweepLeftOvers(): Promise<void> {
      if (queues.size > 0) return;
      sweeping = sweepBuild(engine, buildLabels(executorId), clock);
      await sweeping;
    },
    /**
     * Returns the image of a Dockerfile and builds it if it is missing. Rejects with BuildFailure, with the errors of
     * `images.ensure` and `networkOf`, or with the signal's reason.
     */
    async ensure(
      wanted: BuildWanted,
      onProgress: (progress: BuildProgress) => void,
      signal: AbortSignal,
    ): Promise<ImageReady> {
      const key = buildKey(wanted.dockerfile, ports.logins.scopeOf(wanted.auth));
      const reference = builtReference(executorId, key);
      const work = async () => {
        // A concurrent sweep could remove the new image while it has no name.
        await sweeping.catch(() => undefined);
        const present = await findBuilt(reference);
        if (present !== null) return present;
        onProgress('building');
        await slots.run(() => build(key, wanted, onProgress, signal), signal);
        const built = await findBuilt(reference);
        if (built === null)
          throw new BuildFailure('The image was removed right after it was built');
        return built;
      };
      return inQueue(key, work, signal);
    },
  };
}

/** Converts a failed step to BuildFailure; other errors are returned unchanged. */
function failureOf(error: unknown, output: BuildOutput | null, lines: BuildLines): unknown {
  const isBuildFailure = error instanceof BuildFailure;
  if (!isBuildFailure && !(error instanceof EngineError && error.kind === 'build')) return error;
  if (output === null) return error;
  return new BuildFailure(output.failureOf(messageOf(error), lines.list()));
}

function tooLong(): string {
  return `The build is not done after ${BUILD_TIMEOUT_MS / 60_000} minutes`;
}

type Ports = {
  images: Pick<ImageService, 'ensure'>;
  engine: Pick<ContainerEngine, 'inspectImage'>;
};

/**
 * Fetches the base images before the build, so that the engine queries no registry. Returns ids by `imageName`. Rejects
 * with the errors of `images.ensure`, and with BuildFailure for a base with ONBUILD instructions.
 */
export async function fetchBases(
  ports: Ports,
  bases: readonly BaseImage[],
  auth: RegistryAuth | undefined,
  onProgress: (progress: PullProgress) => void,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  for (const image of bases) {
    // The login is sent to its own registry only.
    const isLoginFor = auth !== undefined && auth.host === registryAddressOf(image.reference);
    const wanted = { ...image, auth: isLoginFor ? auth : undefined };
    const { imageId } = await ports.images.ensure(wanted, onProgress, signal);
    // ONBUILD instructions would run in the build without having been checked.
    const triggers = (await ports.engine.inspectImage(imageId))?.onBuild ?? [];
    if (triggers.length > 0) {
      throw new BuildFailure(
        `${image.reference} has ONBUILD instructions, which are not supported`,
      );
    }
    ids.set(imageName(image), imageId);
  }
  return ids;
}
