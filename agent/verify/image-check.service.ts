/** Checks whether images are present on this node or can be pulled. */
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

/** Timeout for all images together. */
const ANSWER_MS = 10_000;
const MAX_PROBLEM_CHARS = 1_000;
/** Errors that do not show whether the image exists. */
const INCONCLUSIVE: readonly EngineErrorKind[] = [
  'unavailable',
  'refused',
  'conflict',
  'image_rate_limited',
];

export type ImageChecks = ReturnType<typeof createImageChecks>;

export type ImageChecksOptions = {
  clock: Clock;
  executorId: string;
  engine: Pick<ContainerEngine, 'inspectImage' | 'resolveDigest'>;
};

export function createImageChecks({ clock, executorId, engine }: ImageChecksOptions) {
  let isBusy = false;

  async function stateOf(image: string, signal: AbortSignal): Promise<ImageAvailability> {
    try {
      if ((await engine.inspectImage(image)) !== null) {
        return { image, state: 'present', problem: '' };
      }
      await engine.resolveDigest(image, undefined, signal);
      return { image, state: 'pullable', problem: '' };
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const state = INCONCLUSIVE.includes(error.kind) ? 'unknown' : 'missing';
      return { image, state, problem: messageOf(error).slice(0, MAX_PROBLEM_CHARS) };
    }
  }

  return {
    /** Throws 400 for another executor and for registries at private addresses, 409 during another check. */
    async check({ executor_id, images }: ImageCheckRequest): Promise<ImageCheckResult> {
      if (executor_id !== executorId) {
        throw new ApiError('bad_request', 'The check is for another executor');
      }
      const isLocal = (host: string | null) => host !== null && isLocalRegistry(host);
      if (images.some((image) => isLocal(registryHostOf(image)))) {
        throw new ApiError('bad_request', 'The registry of an image has a private address');
      }
      if (isBusy) throw new ApiError('conflict', 'Another check is in progress');
      isBusy = true;
      try {
        const signal = clock.deadline(ANSWER_MS);
        return { images: await Promise.all(images.map((image) => stateOf(image, signal))) };
      } finally {
        isBusy = false;
      }
    },
  };
}
