/** Which registry an image comes from, and whether it is one of the host's own surroundings. Pure. */
import { BlockList, isIP } from 'node:net';

/** Where cloud metadata, routers and other hosts' services live: no place for a renter to make us look. */
const SURROUNDINGS = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['224.0.0.0', 3],
] as const;

const surroundings = new BlockList();
for (const [network, prefix] of SURROUNDINGS) surroundings.addSubnet(network, prefix, 'ipv4');

/** The host before the first slash, without its port; null for Docker Hub's short names. */
export function registryHostOf(reference: string): string | null {
  const [first = '', ...rest] = reference.split('/');
  // Newer engines take a first part with capitals for a host too: it cannot be a path.
  const isHost = rest.length > 0 && (/[.:A-Z]/.test(first) || first === 'localhost');
  return isHost ? first.replace(/:\d+$/, '').toLowerCase() : null;
}

/** True for addresses of private networks and for names that only the host itself resolves. */
export function isLocalRegistry(host: string): boolean {
  if (isIP(host) === 4) return surroundings.check(host, 'ipv4');
  // `127.1` and `2130706433` are addresses too for those who resolve them.
  const looksNumeric = /^[\d.]+$|^0x/.test(host);
  // A name without a dot is `localhost`, or one of the host's own search domain.
  const isShort = !host.includes('.');
  return looksNumeric || isShort || /\.(localhost|local|internal)$/.test(host);
}
