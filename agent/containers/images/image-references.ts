/** What a pod has fetched from registries. Pure. */
import { parseDockerfile } from '#shared/api/agent/dockerfile.ts';
import type { PodSpec } from '#shared/api/agent/pod.ts';

/** Its image, or every image that a Dockerfile builds on; none for one that cannot be read. */
export function referencesOf({ image }: Pick<PodSpec, 'image'>): string[] {
  if (!('dockerfile' in image)) return [image.reference];
  const parsed = parseDockerfile(image.dockerfile);
  return 'problem' in parsed ? [] : parsed.images.map(({ reference }) => reference);
}
