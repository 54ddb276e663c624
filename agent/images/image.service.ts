/** Makes sure that a pod's image is present and is the one that was meant (agent reference 6). */
import type { PodSpec, PullProgress } from '#shared/agent-api/pod.ts';
import { createSemaphore } from '#shared/semaphore.ts';
import { type ContainerEngine, EngineError, type ImageState } from '../docker/engine.ts';
import { BUILTIN_HOST, BUILTIN_REFERENCE, ensureBuiltinImage } from './builtin-image.ts';

export type ImageWanted = PodSpec['image'];
/** `digest` is null only for the built-in image, which no registry knows. */
export type ImageReady = { imageId: string; digest: string | null };
export type ImageService = ReturnType<typeof createImageService>;

/** The engine has an image under the name, and it is not the one that was asked for. */
export class ImageDigestMismatch extends Error {
  override name = 'ImageDigestMismatch';
}

export const MAX_PARALLEL_PULLS = 3;

const NOTHING_YET: PullProgress = {
  layers_done: 0,
  layers_total: 0,
  bytes_done: 0,
  bytes_total: 0,
};

type SharedPull = {
  done: Promise<void>;
  listeners: Set<(progress: PullProgress) => void>;
  abort: AbortController;
};

/** Pulls of one image are shared: the work ends when the last pod that wants it has gone away. */
export function createImageService(ports: { engine: ContainerEngine; busyboxPath: string }) {
  const { engine } = ports;
  const places = createSemaphore(MAX_PARALLEL_PULLS);
  const pulls = new Map<string, SharedPull>();
  let makingBuiltin: Promise<string> | null = null;

  function sharedPull(reference: string): SharedPull {
    const running = pulls.get(reference);
    if (running !== undefined) return running;
    const listeners: SharedPull['listeners'] = new Set();
    const abort = new AbortController();
    const report = (progress: PullProgress) => {
      for (const listener of listeners) listener(progress);
    };
    const pull = () => engine.pullImage(reference, report, abort.signal);
    const done = places.run(pull, abort.signal).finally(() => forget(reference, shared));
    const shared = { done, listeners, abort };
    pulls.set(reference, shared);
    return shared;
  }

  /** A pull that was given up may still be ending when a new one of the same image begins. */
  function forget(reference: string, shared: SharedPull): void {
    if (pulls.get(reference) === shared) pulls.delete(reference);
  }

  async function pull(
    reference: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const shared = sharedPull(reference);
    const listener = (progress: PullProgress) => onProgress(progress);
    shared.listeners.add(listener);
    // Also while it waits for its turn: the caller tells by this that a pull is needed at all.
    onProgress(NOTHING_YET);
    const leave = () => {
      shared.listeners.delete(listener);
      if (shared.listeners.size > 0) return;
      forget(reference, shared);
      shared.abort.abort();
    };
    try {
      await new Promise<void>((resolve, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        shared.done.then(resolve, reject);
      });
    } finally {
      leave();
    }
  }

  async function builtin(reference: string): Promise<ImageReady> {
    if (reference !== BUILTIN_REFERENCE) {
      throw new EngineError('image_not_found', `there is no built-in image ${reference}`);
    }
    makingBuiltin ??= ensureBuiltinImage(engine, ports.busyboxPath).finally(() => {
      makingBuiltin = null;
    });
    return { imageId: await makingBuiltin, digest: null };
  }

  return {
    /**
     * With a digest: exactly that image, pulled only when it is not here. Without: the tag is asked of
     * its registry now, and the digest found is the one to keep. Rejects with EngineError,
     * ImageDigestMismatch, or the signal's reason.
     */
    async ensure(
      wanted: ImageWanted,
      onProgress: (progress: PullProgress) => void,
      signal: AbortSignal,
    ): Promise<ImageReady> {
      const { reference, digest } = wanted;
      if (reference.startsWith(BUILTIN_HOST)) return builtin(reference);
      if (digest === undefined) {
        const tagged = withTag(reference);
        await pull(tagged, onProgress, signal);
        return resolved(await engine.inspectImage(tagged), reference);
      }
      const pinned = `${repositoryOf(reference)}@${digest}`;
      const present = await engine.inspectImage(pinned);
      if (present !== null) return verified(present, digest);
      await pull(pinned, onProgress, signal);
      return verified(await engine.inspectImage(pinned), digest);
    },
  };
}

function verified(image: ImageState | null, digest: string): ImageReady {
  if (image === null || !image.repoDigests.some((entry) => entry.endsWith(`@${digest}`))) {
    const found = image?.repoDigests.join(', ') ?? 'nothing';
    throw new ImageDigestMismatch(`the engine has ${found} instead of ${digest}`);
  }
  return { imageId: image.id, digest };
}

/** One image may carry digests of several repositories; only this one's may be kept for it. */
function resolved(image: ImageState | null, reference: string): ImageReady {
  const repository = familiar(repositoryOf(reference));
  const entry = image?.repoDigests.find(
    (candidate) => familiar(candidate.slice(0, candidate.indexOf('@'))) === repository,
  );
  if (image === null || entry === undefined) {
    throw new ImageDigestMismatch(`the engine knows no digest of ${reference}`);
  }
  return { imageId: image.id, digest: entry.slice(entry.indexOf('@') + 1) };
}

/** Docker Hub's long and short names are one: `docker.io/library/x`, `library/x` and `x`. */
function familiar(repository: string): string {
  return repository.replace(/^(?:index\.)?docker\.io\//, '').replace(/^library\//, '');
}

function tagAt(reference: string): number {
  const at = reference.lastIndexOf(':');
  return at > reference.lastIndexOf('/') ? at : -1;
}

function repositoryOf(reference: string): string {
  const at = tagAt(reference);
  return at === -1 ? reference : reference.slice(0, at);
}

/** Two pods that name the same image with and without `:latest` share one pull. */
function withTag(reference: string): string {
  return tagAt(reference) === -1 ? `${reference}:latest` : reference;
}
