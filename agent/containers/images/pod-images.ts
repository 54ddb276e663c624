/** Provides the image of a pod's generation: pulls it with the pod's login, or builds it. */

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
  /** Digest resolved earlier. Null: use the spec's digest, or else the registry's present digest. */
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
    /** Rejects with the errors of the image or build service, or the signal's reason. */
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
      const isLoginFor = auth !== undefined && auth.host === registryAddressOf(reference);
      const wanted = { reference, auth: isLoginFor ? auth : undefined };
      return images.ensure(
        pinned === undefined ? wanted : { ...wanted, digest: pinned },
        onProgress,
        signal,
      );
    },
    /** Image id and pinned name that the generation needs to run or restart. */
    usedBy({ spec_json, image_id: imageId, image_digest: digest }: PodGeneration): string[] {
      const { image } = PodSpec.parse(JSON.parse(spec_json));
      const isPinned = 'reference' in image && digest !== null;
      const pinned = isPinned ? [pinnedName(image.reference, digest)] : [];
      return imageId === null ? pinned : [imageId, ...pinned];
    },
    /** Key of the image's build log; null for an image that is not built on this host. */
    buildKeyOf(podId: string, { generation, spec_json }: PodGeneration): string | null {
      const { image } = PodSpec.parse(JSON.parse(spec_json));
      return 'dockerfile' in image
        ? builds.keyOf(image.dockerfile, logins.of(podId, generation))
        : null;
    },
  };
}
