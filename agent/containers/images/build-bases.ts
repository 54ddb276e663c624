/** Fetches what a Dockerfile builds on, before the build begins: the engine itself then asks no registry. */
import type { BaseImage } from '#shared/api/agent/dockerfile.ts';
import {
  type PullProgress,
  type RegistryAuth,
  registryAddressOf,
} from '#shared/api/agent/images.ts';
import type { ContainerEngine } from '../engine/engine.ts';
import { BuildFailure } from './build-failure.ts';
import { imageName } from './build-text.ts';
import type { ImageService } from './image.service.ts';

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
