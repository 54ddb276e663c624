/** The image of one generation of a pod: pulled with the pod's login, or built. */

import { registryAddressOf } from '#shared/api/agent/images.ts';
import { PodSpec } from '#shared/api/agent/pod.ts';
import type { BuildProgress, BuildService } from './build.service.ts';
import type { ImageReady, ImageService } from './image.service.ts';
import { pinnedName } from './image-name.ts';
import type { RegistryLogins } from './registry-logins.ts';

export type PodImageWanted = {
  podId: string;
  generation: number;
  spec: PodSpec;
  /** The digest that was found before; null: the spec's, or what the registry has now. */
  digest: string | null;
};

/** The columns of a pod's row that describe one of its generations. */
export type PodGeneration = {
  generation: number;
  spec_json: string;
  image_id: string | null;
  image_digest: string | null;
};

export type PodImages = ReturnType<typeof createPodImages>;

export function createPodImages(ports: {
  images: Pick<ImageService, 'ensure'>;
  builds: Pick<BuildService, 'ensure' | 'keyOf'>;
  logins: Pick<RegistryLogins, 'of'>;
}) {
  const { images, builds, logins } = ports;

  return {
    /** Rejects with what the image or build service rejects with, or the signal's reason. */
    async ensure(
      { podId, generation, spec, digest }: PodImageWanted,
      onProgress: (progress: BuildProgress) => void,
      signal: AbortSignal,
    ): Promise<ImageReady> {
      const { image, limits } = spec;
      const auth = logins.of(podId, generation);
      if ('dockerfile' in image) {
        return builds.ensure(
          { podId, dockerfile: image.dockerfile, auth, limits },
          onProgress,
          signal,
        );
      }
      const { reference } = image;
      const pinned = digest ?? image.digest;
      const isFor = auth !== undefined && auth.host === registryAddressOf(reference);
      const wanted = { reference, auth: isFor ? auth : undefined };
      return images.ensure(
        pinned === undefined ? wanted : { ...wanted, digest: pinned },
        onProgress,
        signal,
      );
    },
    /** What must stay for a generation to run or to start again: the engine's id, and the name that is pinned. */
    usedBy({ spec_json, image_id: imageId, image_digest: digest }: PodGeneration): string[] {
      const { image } = PodSpec.parse(JSON.parse(spec_json));
      const isPinned = 'reference' in image && digest !== null;
      const pinned = isPinned ? [pinnedName(image.reference, digest)] : [];
      return imageId === null ? pinned : [imageId, ...pinned];
    },
    /** By what the log of its build goes; null for an image that is not built here. */
    buildKeyOf(podId: string, { generation, spec_json }: PodGeneration): string | null {
      const { image } = PodSpec.parse(JSON.parse(spec_json));
      return 'dockerfile' in image
        ? builds.keyOf(image.dockerfile, logins.of(podId, generation))
        : null;
    },
  };
}
