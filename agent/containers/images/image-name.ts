/** Image names: repository and tag, registry, patterns over names, and the images that a spec references. Pure. */
import { isIP } from 'node:net';
import { parseDockerfile } from '#shared/api/agent/dockerfile.ts';
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { isNonPublicIpv4 } from '#shared/http/addresses.ts';

/** `[host[:port]/]path`, without the tag. */
function repositoryOf(reference: string): string {
  const at = tagAt(reference);
  return at === -1 ? reference : reference.slice(0, at);
}

/** Name of an image with a digest: `repository@digest`. */
export function pinnedName(reference: string, digest: string): string {
  return `${repositoryOf(reference)}@${digest}`;
}

/** Appends `:latest` if there is no tag. */
export function withTag(reference: string): string {
  return tagAt(reference) === -1 ? `${reference}:latest` : reference;
}

/** Returns the index of the colon before the tag, or -1. A colon before the last slash belongs to a port. */
function tagAt(reference: string): number {
  const at = reference.lastIndexOf(':');
  return at > reference.lastIndexOf('/') ? at : -1;
}

/** Returns the spec's image, or the base images of its Dockerfile; none if the Dockerfile cannot be parsed. */
export function referencesOf({ image }: Pick<PodSpec, 'image'>): string[] {
  if (!('dockerfile' in image)) return [image.reference];
  const parsed = parseDockerfile(image.dockerfile);
  return 'problem' in parsed ? [] : parsed.images.map(({ reference }) => reference);
}

/** Returns the registry's host without its port; null for Docker Hub's short names. */
export function registryHostOf(reference: string): string | null {
  const [first = '', ...rest] = reference.split('/');
  // Engines treat a first part with capital letters as a host, because repository paths are lower case.
  const isHost = rest.length > 0 && (/[.:A-Z]/.test(first) || first === 'localhost');
  return isHost ? first.replace(/:\d+$/, '').toLowerCase() : null;
}

/**
 * Returns true for private addresses and for names that only the host resolves. Renters must not make the agent connect
 * to these.
 */
export function isLocalRegistry(host: string): boolean {
  if (isIP(host) === 4) return isNonPublicIpv4(host);
  // Resolvers accept `127.1` and `2130706433` as addresses too.
  const looksNumeric = /^[\d.]+$|^0x/.test(host);
  // A name without a dot is `localhost` or a host in the local search domain.
  const isShort = !host.includes('.');
  return looksNumeric || isShort || /\.(localhost|local|internal)$/.test(host);
}

/** Normalizes the names of images and registries, and matches patterns against the normalized names. Pure. */

const DEFAULT_REGISTRY = 'docker.io';
/** Other names of Docker Hub. */
const HUB_ALIASES = new Set(['index.docker.io', 'registry-1.docker.io']);
const OFFICIAL = 'library/';

export type ImageName = {
  /** Lower case, without the default port. */
  registry: string;
  /** `registry/path`. */
  name: string;
  tag: string;
};

/** Normalizes a reference: `ubuntu` becomes `docker.io/library/ubuntu:latest`. */
export function imageNameOf(reference: string): ImageName {
  const colon = reference.indexOf(':', reference.lastIndexOf('/') + 1);
  const tag = colon === -1 ? 'latest' : reference.slice(colon + 1);
  const untagged = colon === -1 ? reference : reference.slice(0, colon);
  const [first = '', ...rest] = untagged.split('/');
  const isHost = rest.length > 0 && (/[.:A-Z]/.test(first) || first === 'localhost');
  const registry = isHost ? registryOf(first) : DEFAULT_REGISTRY;
  const path = isHost ? rest.join('/') : untagged;
  const isOfficial = registry === DEFAULT_REGISTRY && !path.includes('/');
  return { registry, name: `${registry}/${isOfficial ? OFFICIAL : ''}${path}`, tag };
}

function registryOf(host: string): string {
  const plain = host.toLowerCase().replace(/:443$/, '');
  return HUB_ALIASES.has(plain) ? DEFAULT_REGISTRY : plain;
}

/** Returns true if the pattern matches the image's registry. A pattern without a port matches every port. */
export function matchesRegistry(pattern: string, { registry }: ImageName): boolean {
  const wanted = pattern.toLowerCase();
  if (matchesPattern(wanted, registry)) return true;
  return !wanted.includes(':') && matchesPattern(wanted, registry.replace(/:\d+$/, ''));
}

/** Returns true if the pattern matches the image. A pattern without a tag matches every tag. */
export function matchesImage(pattern: string, { name, tag }: ImageName): boolean {
  return matchesPattern(pattern, name) || matchesPattern(pattern, `${name}:${tag}`);
}

/** `*` matches any characters, including none. Runs in time linear in the text, whatever the pattern. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [head = '', ...parts] = pattern.split('*');
  if (parts.length === 0) return text === pattern;
  const tail = parts.pop() ?? '';
  if (!text.startsWith(head) || text.length < head.length + tail.length) return false;
  if (!text.endsWith(tail)) return false;
  let at = head.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= text.length - tail.length;
}
