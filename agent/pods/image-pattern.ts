/** Images and registries under one name each, however they are written, and patterns over those. Pure. */

const DEFAULT_REGISTRY = 'docker.io';
/** Docker Hub goes by these names too. */
const HUB_ALIASES = new Set(['index.docker.io', 'registry-1.docker.io']);
const OFFICIAL = 'library/';

export type ImageName = {
  /** Lower case, without the default port. */
  registry: string;
  /** `registry/path`. */
  name: string;
  tag: string;
};

/** `ubuntu` is `docker.io/library/ubuntu:latest`. The reference is one that the pod's schema takes. */
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

/** A pattern without a port means every port. */
export function matchesRegistry(pattern: string, { registry }: ImageName): boolean {
  const wanted = pattern.toLowerCase();
  if (matchesPattern(wanted, registry)) return true;
  return !wanted.includes(':') && matchesPattern(wanted, registry.replace(/:\d+$/, ''));
}

/** A pattern without a tag means every tag. */
export function matchesImage(pattern: string, { name, tag }: ImageName): boolean {
  return matchesPattern(pattern, name) || matchesPattern(pattern, `${name}:${tag}`);
}

/** `*` stands for any characters, none included. In steps of the text's length, whatever the pattern. */
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
