/** Validates and canonicalises the IP address of a node. Pure. */
import { BlockList, isIP } from 'node:net';
import { isPublicAddress, WIRE_SERVER } from '#shared/http/addresses.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';

/** `public` allows only public addresses. `private` also allows private networks. */
export const NODE_PLACES = ['public', 'private'] as const;
export type NodePlaces = (typeof NODE_PLACES)[number];

export type AllowedPlaces = {
  places: NodePlaces;
  /** True if `private` includes loopback addresses, because the central API is reachable from this host only. */
  loopback: boolean;
};

/**
 * Networks that are never allowed: unspecified, link-local (which includes cloud metadata), multicast and reserved
 * networks.
 */
const BLOCKED = [
  ['0.0.0.0', 8, 'ipv4'],
  [WIRE_SERVER, 32, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 4, 'ipv4'],
  ['240.0.0.0', 4, 'ipv4'],
  // NAT64 and 6to4 can embed any IPv4 address.
  ['64:ff9b::', 96, 'ipv6'],
  ['64:ff9b:1::', 48, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
] as const;

const blocked = new BlockList();
for (const [network, prefix, kind] of BLOCKED) blocked.addSubnet(network, prefix, kind);

/**
 * Returns the canonical form of an address, so that two notations of the same address are equal. Throws 400 for text
 * that is not an allowed IP address.
 */
export function nodeAddress(text: string, { places, loopback }: AllowedPlaces): string {
  const family = isIP(text);
  if (family === 0 || text.includes('%')) {
    throw new ApiError('bad_request', `${text} is not an IP address`, {
      hint: 'Send an IPv4 or IPv6 address, not a host name.',
    });
  }
  const address = family === 4 ? text : canonicalIpv6(text);
  const isBlocked = blocked.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
  const isPlaceAllowed =
    places === 'private' ? loopback || !isLoopback(address) : isPublicAddress(address);
  if (!isBlocked && isPlaceAllowed) return address;
  throw new ApiError('bad_request', `A node cannot have the address ${text}`, {
    hint: 'Send the public address at which validators and renters reach the host.',
  });
}

/** Returns the shortest form in lower case. Returns an IPv4-mapped address as IPv4. */
function canonicalIpv6(text: string): string {
  const short = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short);
  if (mapped === null) return short;
  const [high = 0, low = 0] = mapped.slice(1).map((word) => Number.parseInt(word, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
