/** Whether images are here, or can be had from their registries, as the engine says. */
import type {
  ImageAvailability,
  ImageCheckRequest,
  ImageCheckResult,
} from '#shared/api/agent/host-checks.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import {
  type ContainerEngine,
  EngineError,
  type EngineErrorKind,
} from '../containers/engine/engine.ts';
import { isLocalRegistry, registryHostOf } from '../containers/images/image-name.ts';

/** For all of them together. */
const ANSWER_MS = 10_000;
const MAX_PROBLEM_CHARS = 1_000;
/** After these the image may well be there for a pod that comes later. */
const SAYS_NOTHING: readonly EngineErrorKind[] = [
  ...(['unavailable', 'refused', 'conflict', 'image_rate_limited'] as const),
];

export type ImageChecks = ReturnType<typeof createImageChecks>;

export type ImageChecksOptions = {
  clock: Clock;
  executorId: string;
  engine: Pick<ContainerEngine, 'inspectImage' | 'resolveDigest'>;
};

export function createImageChecks({ clock, executorId, engine }: ImageChecksOptions) {
  let isBusy = false;

  async function standingOf(image: string, signal: AbortSignal): Promise<ImageAvailability> {
    try {
      if ((await engine.inspectImage(image)) !== null) {
        return { image, state: 'present', problem: '' };
      }
      await engine.resolveDigest(image, undefined, signal);
      return { image, state: 'pullable', problem: '' };
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const state = SAYS_NOTHING.includes(error.kind) ? 'unknown' : 'missing';
      return { image, state, problem: messageOf(error).slice(0, MAX_PROBLEM_CHARS) };
    }
  }

  return {
    /** One at a time. Throws 400 for another executor and for registries of the host's surroundings, 409 beside another check. */
    async check({ executor_id: asked, images }: ImageCheckRequest): Promise<ImageCheckResult> {
      if (asked !== executorId) {
        throw new ApiError('bad_request', 'The check is for another executor');
      }
      const isLocal = (host: string | null) => host !== null && isLocalRegistry(host);
      if (images.some((image) => isLocal(registryHostOf(image)))) {
        throw new ApiError('bad_request', 'An image is of a registry at a private address');
      }
      if (isBusy) throw new ApiError('conflict', 'Another check is under way');
      isBusy = true;
      try {
        const signal = clock.deadline(ANSWER_MS);
        return { images: await Promise.all(images.map((image) => standingOf(image, signal))) };
      } finally {
        isBusy = false;
      }
    },
  };
}
