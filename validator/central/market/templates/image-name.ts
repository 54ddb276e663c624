/** Image names as clients send them, in two or three parts cut anywhere, and as we keep them. Pure. */
import { ImageDigest, ImageReference } from '#shared/api/agent/pod.ts';

/** `image` is `[host[:port]/]path`; the tag is empty only beside a digest. */
export type ImageName = { image: string; tag: string; digest: string };

/**
 * Null when malformed. Clients cut at the last colon, be it a registry's port or a digest's, so image and
 * tag are joined again before anything is read from them (contract 8).
 */
export function parseImageName(image: string, tag: string, digest: string): ImageName | null {
  const joined = tag === '' ? image : `${image}:${tag}`;
  const [name = '', ownDigest, ...rest] = joined.split('@');
  if (rest.length > 0 || (ownDigest !== undefined && digest !== '' && ownDigest !== digest)) {
    return null;
  }
  const pinned = ownDigest ?? digest;
  if (pinned !== '' && !ImageDigest.safeParse(pinned).success) return null;
  // No registry's name begins with a dot or a dash; `../x` and `--x/y` only look like one.
  if (!/^[A-Za-z0-9]/.test(name) || !ImageReference.safeParse(name).success) return null;

  const colonAt = name.lastIndexOf(':');
  const hasTag = colonAt > name.lastIndexOf('/');
  return {
    image: hasTag ? name.slice(0, colonAt) : name,
    tag: hasTag ? name.slice(colonAt + 1) : pinned === '' ? 'latest' : '',
    digest: pinned,
  };
}

/** `image[:tag]`, what an agent is given beside the digest. */
export function imageReference({ image, tag }: Pick<ImageName, 'image' | 'tag'>): string {
  return tag === '' ? image : `${image}:${tag}`;
}
