/** Which addresses a node may have. Pure. */
import { BlockList, isIP } from 'node:net';
import { isPublicAddress } from '#shared/http/addresses.ts';
import { ApiError } from '#shared/runtime/errors.ts';

/** `public`: on the internet. `private`: in the operator's own networks too, or on this machine. */
export const NODE_PLACES = ['public', 'private'] as const;
export type NodePlaces = (typeof NODE_PLACES)[number];

/** No host is reached there: unspecified, link-local (cloud metadata among it), multicast and reserved. */
const REFUSED = [
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 4, 'ipv4'],
  ['240.0.0.0', 4, 'ipv4'],
  // Behind NAT64 and 6to4 any address of IPv4 may stand.
  ['64:ff9b::', 96, 'ipv6'],
  ['64:ff9b:1::', 48, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
] as const;

const refused = new BlockList();
for (const [network, prefix, kind] of REFUSED) refused.addSubnet(network, prefix, kind);

/** The one way to write the address, so that no host is two nodes. Throws 400 for what is no address of a host. */
export function nodeAddress(text: string, places: NodePlaces): string {
  const given = isIP(text);
  if (given === 0 || text.includes('%')) {
    throw new ApiError('bad_request', `${text} is not an IP address`, {
      hint: 'Give an IPv4 or IPv6 address as digits.',
    });
  }
  const address = given === 4 ? text : canonicalIpv6(text);
  const isRefused = refused.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
  if (!isRefused && (places === 'private' || isPublicAddress(address))) return address;
  throw new ApiError('bad_request', `A node cannot have the address ${text}`, {
    hint: 'Give the public address under which validators and renters reach the host.',
  });
}

/** Shortest form, lower case; an IPv4 address in IPv6 clothes is that IPv4 address. */
function canonicalIpv6(text: string): string {
  const short = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short);
  if (mapped === null) return short;
  const [high = 0, low = 0] = mapped.slice(1).map((word) => Number.parseInt(word, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
