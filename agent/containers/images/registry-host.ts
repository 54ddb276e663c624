/** Which registry an image comes from, and whether it is one of the host's own surroundings. Pure. */
import { isIP } from 'node:net';
import { isSurrounding } from '#shared/http/addresses.ts';

/** The host before the first slash, without its port; null for Docker Hub's short names. */
export function registryHostOf(reference: string): string | null {
  const [first = '', ...rest] = reference.split('/');
  // Newer engines take a first part with capitals for a host too: it cannot be a path.
  const isHost = rest.length > 0 && (/[.:A-Z]/.test(first) || first === 'localhost');
  return isHost ? first.replace(/:\d+$/, '').toLowerCase() : null;
}

/** True for addresses of private networks and for names that only the host itself resolves: no place for a renter to make us look. */
export function isLocalRegistry(host: string): boolean {
  if (isIP(host) === 4) return isSurrounding(host);
  // `127.1` and `2130706433` are addresses too for those who resolve them.
  const looksNumeric = /^[\d.]+$|^0x/.test(host);
  // A name without a dot is `localhost`, or one of the host's own search domain.
  const isShort = !host.includes('.');
  return looksNumeric || isShort || /\.(localhost|local|internal)$/.test(host);
}
