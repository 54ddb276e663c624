/** Builds images from Dockerfiles, each once, in the network of the pod that wants it (contract 4.1). */
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
/** From the first step to the last. */
export const BUILD_TIMEOUT_MS = 3_600_000;
/** What a build may write where the pod's spec sets no limit. */
const DEFAULT_DISK_BYTES = 64 * 1024 ** 3;

export type BuildWanted = {
  podId: string;
  dockerfile: string;
  auth: RegistryAuth | undefined;
  limits: PodSpec['limits'];
};

/** `building`: the pulls are done. */
export type BuildProgress = PullProgress | 'building';

export type BuildService = ReturnType<typeof createBuildService>;

export function createBuildService(ports: {
  executorId: string;
  engine: ContainerEngine;
  images: ImageService;
  store: ImageStore;
  logs: BuildLogs;
  logins: Pick<RegistryLogins, 'scopeOf'>;
  /** The name of the pod's network, which is made when it is missing. */
  networkOf(podId: string): Promise<string>;
  clock: Clock;
  log: Log;
}) {
  const { executorId, engine, store, logs, clock, log } = ports;
  const places = createSemaphore(MAX_PARALLEL_BUILDS);
  /** Builds of one key follow each other, so that the second finds the image of the first. */
  const turns = new Map<string, { place: ReturnType<typeof createSemaphore>; users: number }>();

  let sweeping: Promise<void> = Promise.resolve();

  async function inTurn<T>(key: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const turn = turns.get(key) ?? { place: createSemaphore(1), users: 0 };
    turns.set(key, turn);
    turn.users += 1;
    try {
      return await turn.place.run(work, signal);
    } finally {
      turn.users -= 1;
      if (turn.users === 0) turns.delete(key);
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
      if (built === null) throw new BuildFailure('The image vanished as soon as it was built');
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
        log.warn({ detail: messageOf(error) }, 'what a build has left is swept later'),
      );
    }
  }

  return {
    /** What the log and the image of a Dockerfile go by. */
    keyOf: (dockerfile: string, auth: RegistryAuth | undefined): string =>
      buildKey(dockerfile, ports.logins.scopeOf(auth)),
    /** Removes what builds of an earlier life of the agent have left; nothing while one is under way. */
    async sweepLeftOvers(): Promise<void> {
      if (turns.size > 0) return;
      sweeping = sweepBuild(engine, buildLabels(executorId), clock);
      await sweeping;
    },
    /**
     * The image of a Dockerfile, built unless it is here. Rejects with BuildFailure, with what
     * `images.ensure` and the pod's network reject with, or the signal's reason.
     */
    async ensure(
      wanted: BuildWanted,
      onProgress: (progress: BuildProgress) => void,
      signal: AbortSignal,
    ): Promise<ImageReady> {
      const key = buildKey(wanted.dockerfile, ports.logins.scopeOf(wanted.auth));
      const reference = builtReference(executorId, key);
      const work = async () => {
        // It removes by their ids images that had no name when it looked.
        await sweeping.catch(() => undefined);
        const present = await findBuilt(reference);
        if (present !== null) return present;
        onProgress('building');
        await places.run(() => build(key, wanted, onProgress, signal), signal);
        const built = await findBuilt(reference);
        if (built === null) throw new BuildFailure('The image vanished as soon as it was built');
        return built;
      };
      return inTurn(key, work, signal);
    },
  };
}

/** A failed step is the Dockerfile's fault; anything else has a reason of its own. */
function failureOf(error: unknown, output: BuildOutput | null, lines: BuildLines): unknown {
  const isOwn = error instanceof BuildFailure;
  if (!isOwn && !(error instanceof EngineError && error.kind === 'build')) return error;
  if (output === null) return error;
  return new BuildFailure(output.failureOf(messageOf(error), lines.list()));
}

function tooLong(): string {
  return `The build is not done after ${BUILD_TIMEOUT_MS / 60_000} minutes`;
}

// MERGED agent/containers/images/build.service.ts: Fetches what a Dockerfile builds on, before the build begins: the engine itself then asks no registry.
type Ports = {
  images: Pick<ImageService, 'ensure'>;
  engine: Pick<ContainerEngine, 'inspectImage'>;
};

/** Ids by `imageName`. Rejects as `images.ensure` does, and with BuildFailure for a base that is refused. */
export async function fetchBases(
  ports: Ports,
  bases: readonly BaseImage[],
  auth: RegistryAuth | undefined,
  onProgress: (progress: PullProgress) => void,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  for (const image of bases) {
    // The login goes only where it belongs.
    const isFor = auth !== undefined && auth.host === registryAddressOf(image.reference);
    const wanted = { ...image, auth: isFor ? auth : undefined };
    const { imageId } = await ports.images.ensure(wanted, onProgress, signal);
    // They would run in the build without having been read.
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
