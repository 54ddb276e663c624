/** What a pod has fetched from registries. Pure. */
import { parseDockerfile } from '#shared/agent-api/dockerfile.ts';
import type { PodSpec } from '#shared/agent-api/pod.ts';

/** Its image, or every image that a Dockerfile builds on; none for one that cannot be read. */
export function referencesOf({ image }: Pick<PodSpec, 'image'>): string[] {
  if (!('dockerfile' in image)) return [image.reference];
  const parsed = parseDockerfile(image.dockerfile);
  return 'problem' in parsed ? [] : parsed.images.map(({ reference }) => reference);
}
