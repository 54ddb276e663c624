/** Ensures that a pod's image is present and has the expected digest. */
import {
  BUILTIN_HOST,
  NO_PROGRESS,
  type PullProgress,
  type RegistryAuth,
} from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import { type ContainerEngine, EngineError, type ImageState } from '../engine/engine.ts';
import { BUILTIN_REFERENCE, ensureBuiltinImage } from './builtin-image.ts';
import type { ImageStore } from './image.store.ts';
import { pinnedName, withTag } from './image-name.ts';
import type { RegistryLogins } from './registry-logins.ts';

export type ImageWanted = { reference: string; digest?: string; auth?: RegistryAuth | undefined };
/** `digest` is null for the built-in image and images built on this host. */
export type ImageReady = { imageId: string; digest: string | null };
export type ImageService = ReturnType<typeof createImageService>;

type Login = { auth: RegistryAuth | undefined; scope: string };

/** The image under this name has another digest. */
export class ImageDigestMismatch extends Error {
  override name = 'ImageDigestMismatch';
}

export const MAX_PARALLEL_PULLS = 3;

/** Pulls of one image with one login are shared. A pull is aborted when the last pod that waits for it has left. */
export function createImageService(ports: {
  engine: ContainerEngine;
  store: ImageStore;
  logins: Pick<RegistryLogins, 'scopeOf'>;
  clock: Clock;
  busyboxPath: string;
}) {
  const { engine, store, clock } = ports;
  const slots = createSemaphore(MAX_PARALLEL_PULLS);
  const pulls = createSharedWork<PullProgress>();
  const resolutions = createSharedWork<string>();
  let makingBuiltin: Promise<string> | null = null;

  async function builtin(reference: string): Promise<ImageReady> {
    if (reference !== BUILTIN_REFERENCE) {
      throw new EngineError('image_not_found', `there is no built-in image ${reference}`);
    }
    makingBuiltin ??= ensureBuiltinImage(engine, ports.busyboxPath).finally(() => {
      makingBuiltin = null;
    });
    return { imageId: await makingBuiltin, digest: null };
  }

  /** Pulls by digest only, because a pull by tag would move the tag that the provider may use for another image. */
  async function pull(
    pinned: string,
    { auth, scope }: Login,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const work = (report: (progress: PullProgress) => void, ending: AbortSignal) =>
      slots.run(() => engine.pullImage(pinned, { auth, onProgress: report }, ending), ending);
    await pulls.join(`${pinned} ${scope}`, work, onProgress, signal);
  }

  /** Returns the image if it is present, and was pulled before with this login or without a login. */
  async function findKnown(
    pinned: string,
    digest: string,
    scope: string,
  ): Promise<ImageReady | null> {
    const present = await engine.inspectImage(pinned);
    if (present === null) return null;
    const ready = verified(present, digest);
    if (!store.mayUse(pinned, scope)) return null;
    store.touch(pinned, clock.now());
    return ready;
  }

  async function resolve(
    reference: string,
    { auth, scope }: Login,
    signal: AbortSignal,
  ): Promise<string> {
    let found = '';
    const work = async (report: (digest: string) => void, ending: AbortSignal) =>
      report(await engine.resolveDigest(reference, auth, ending));
    const keep = (digest: string) => {
      found = digest;
    };
    await resolutions.join(`${reference} ${scope}`, work, keep, signal);
    return found;
  }

  return {
    /**
     * With a digest, ensures exactly that image and pulls it if it is missing; the registry is queried unless
     * the image was pulled before with this login or without a login. Without a digest, resolves the tag at
     * its registry now and returns the digest. `auth` must be for the image's registry. Rejects with
     * EngineError, ImageDigestMismatch, or the signal's reason.
     */
    async ensure(
      { reference, digest, auth }: ImageWanted,
      onProgress: (progress: PullProgress) => void,
      signal: AbortSignal,
    ): Promise<ImageReady> {
      if (reference.startsWith(BUILTIN_HOST)) return builtin(reference);
      const scope = ports.logins.scopeOf(auth);
      if (digest !== undefined) {
        const known = await findKnown(pinnedName(reference, digest), digest, scope);
        if (known !== null) return known;
      }
      // Reported before the pull gets one of the limited slots, so that the caller can show that the pull is queued.
      onProgress(NO_PROGRESS);
      // Query the registry even if a digest is requested: the engine would skip the access check for content that
      // another login has pulled.
      const name = digest === undefined ? withTag(reference) : pinnedName(reference, digest);
      const wanted = await resolve(name, { auth, scope }, signal);
      const pinned = pinnedName(reference, wanted);
      const present = await engine.inspectImage(pinned);
      if (present === null) {
        store.begin(pinned, clock.now());
        await pull(pinned, { auth, scope }, onProgress, signal);
      }
      const image = present ?? (await engine.inspectImage(pinned));
      const ready = verified(image, wanted);
      const sizeBytes = image?.sizeBytes ?? 0;
      store.finish({ reference: pinned, imageId: ready.imageId, sizeBytes, nowMs: clock.now() });
      store.addScope(pinned, scope);
      return ready;
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

type Running<Progress> = {
  done: Promise<void>;
  listeners: Set<(progress: Progress) => void>;
  abort: AbortController;
};

/**
 * Runs the work of each key at most once at a time, for several waiters. The work starts with the first waiter and is
 * aborted when the last waiter leaves.
 */
function createSharedWork<Progress>() {
  const running = new Map<string, Running<Progress>>();

  /** Removes the entry only if it is `which`: the key may have started again while aborted work was still ending. */
  function forget(key: string, which: Running<Progress>): void {
    if (running.get(key) === which) running.delete(key);
  }

  function begin(
    key: string,
    work: (report: (progress: Progress) => void, signal: AbortSignal) => Promise<void>,
  ): Running<Progress> {
    const listeners: Running<Progress>['listeners'] = new Set();
    const abort = new AbortController();
    const report = (progress: Progress) => {
      for (const listener of listeners) listener(progress);
    };
    const done = work(report, abort.signal).finally(() => forget(key, fresh));
    const fresh = { done, listeners, abort };
    running.set(key, fresh);
    return fresh;
  }

  return {
    /** Settles as the work does; rejects with the reason of `signal` if that aborts first. */
    async join(
      key: string,
      work: (report: (progress: Progress) => void, signal: AbortSignal) => Promise<void>,
      onProgress: (progress: Progress) => void,
      signal: AbortSignal,
    ): Promise<void> {
      const shared = running.get(key) ?? begin(key, work);
      const listener = (progress: Progress) => onProgress(progress);
      shared.listeners.add(listener);
      try {
        await new Promise<void>((resolve, reject) => {
          if (signal.aborted) reject(signal.reason);
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
          shared.done.then(resolve, reject);
        });
      } finally {
        shared.listeners.delete(listener);
        if (shared.listeners.size === 0) {
          forget(key, shared);
          shared.abort.abort();
        }
      }
    },
  };
}
