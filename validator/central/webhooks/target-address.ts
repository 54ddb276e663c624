/** Where a webhook may lead: to public addresses over TLS, or on a laptop to this machine alone. Pure. */
import { BlockList, isIP } from 'node:net';
import { isLoopback } from '#shared/tls/loopback.ts';

/** `public`: https to the internet. `loopback`: to this machine, for a marketplace on a laptop. */
export const TARGETS = ['public', 'loopback'] as const;
export type Targets = (typeof TARGETS)[number];

/** The IANA registries of special purpose (RFC 6890): nobody's receiver, and some of them our own surroundings. */
const SPECIAL_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const;

/** Of IPv6 only what is given out (2000::/3) is public, less what stands for something else. */
const SPECIAL_IPV6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const;

const special = new BlockList();
for (const [network, prefix] of SPECIAL_IPV4) special.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of SPECIAL_IPV6) special.addSubnet(network, prefix, 'ipv6');
const given = new BlockList();
given.addSubnet('2000::', 3, 'ipv6');

/** Whether a connection to this address, as a resolver gives it, is allowed. */
export function isAllowedAddress(address: string, targets: Targets): boolean {
  if (targets === 'loopback') return isLoopback(address);
  switch (isIP(address)) {
    case 4:
      return !special.check(address, 'ipv4');
    case 6:
      return given.check(address, 'ipv6') && !special.check(address, 'ipv6');
    default:
      return false;
  }
}

/** Why no webhook may have this URL; null when its address alone is left to judge. */
export function targetProblem(text: string, targets: Targets): string | null {
  const url = URL.parse(text);
  if (url === null) return 'is not a URL';
  if (url.username !== '' || url.password !== '') return 'holds a user name or password';
  if (targets === 'loopback') {
    if (!/^https?:$/.test(url.protocol)) return 'begins with neither http:// nor https://';
    return isLoopback(bareHost(url))
      ? null
      : 'leads away from this machine, which is not done here';
  }
  if (url.protocol !== 'https:') return 'does not begin with https://';
  const host = bareHost(url);
  if (isIP(host) !== 0 && !isAllowedAddress(host, targets)) {
    return 'leads to a private or reserved address';
  }
  return null;
}

/** IPv6 addresses without their brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}
