/** The name servers that the engine asks on behalf of pods: those of the host, unless they are its loopback. */
import { readFile } from 'node:fs/promises';

/** The second is where systemd-resolved names the real ones; Docker reads the same two. */
const FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];
const MAX_RESOLVERS = 8;

/** IPv4 addresses outside the host's loopback; a loopback resolver is asked by the engine itself. */
export async function hostResolvers(): Promise<string[]> {
  const texts = await Promise.all(FILES.map((file) => readFile(file, 'utf8').catch(() => '')));
  return resolversIn(texts.join('\n'));
}

export function resolversIn(text: string): string[] {
  const found = [...text.matchAll(/^\s*nameserver\s+(\d{1,3}(?:\.\d{1,3}){3})\s*$/gm)];
  const addresses = found.flatMap(([, address = '']) =>
    address.startsWith('127.') ? [] : [address],
  );
  return [...new Set(addresses)].sort().slice(0, MAX_RESOLVERS);
}
