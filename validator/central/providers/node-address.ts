/** Which addresses a node may have. Pure. */
import { BlockList, isIP } from 'node:net';
import { ApiError } from '#shared/errors.ts';

/** No host is reached there: unspecified, link-local (cloud metadata among it), multicast and reserved. */
const REFUSED = [
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 4, 'ipv4'],
  ['240.0.0.0', 4, 'ipv4'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
] as const;

/** Throws 400 for what is no address of a host. */
export function requireNodeAddress(text: string): void {
  const family = isIP(text);
  if (family === 0 || text.includes('%')) {
    throw new ApiError('bad_request', `${text} is not an IP address`, {
      hint: 'Give an IPv4 or IPv6 address as digits.',
    });
  }
  const refused = new BlockList();
  for (const [network, prefix, kind] of REFUSED) refused.addSubnet(network, prefix, kind);
  if (!refused.check(text, family === 4 ? 'ipv4' : 'ipv6')) return;
  throw new ApiError('bad_request', `A node cannot have the address ${text}`, {
    hint: 'Give the address under which validators and renters reach the host.',
  });
}
