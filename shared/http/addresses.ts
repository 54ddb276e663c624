/** Which addresses are somebody's on the internet, and which are surroundings of a host. Pure. */
import { BlockList, isIP } from 'node:net';

/** Of IPv4: private and shared networks, link-local (cloud metadata among it), this very host, multicast and reserved (RFC 6890). */
export const NON_PUBLIC_IPV4: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/** For measurements between networks (RFC 2544). */
export const BENCHMARK_RANGE = '198.18.0.0/15';

/** Nobody's host: for protocols, documentation and measurements (RFC 6890). */
const NOBODYS = [
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  BENCHMARK_RANGE,
  '198.51.100.0/24',
  '203.0.113.0/24',
];

/** Of IPv6 only what is given out is public, less what stands for something else. */
const GIVEN_IPV6 = ['2000::/3'];
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const surroundings = listOf(NON_PUBLIC_IPV4, 'ipv4');
const nobodys = listOf(NOBODYS, 'ipv4');
const given = listOf(GIVEN_IPV6, 'ipv6');
const special = listOf(SPECIAL_IPV6, 'ipv6');

function listOf(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/');
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}

/** Whether an IPv4 address lies where metadata, routers and other hosts' services are. */
export function isNonPublicIpv4(ipv4: string): boolean {
  return surroundings.check(ipv4, 'ipv4');
}

/** An address as a resolver or a person writes it; false for what is none. IPv4 in the clothes of IPv6 is not public. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !isNonPublicIpv4(address) && !nobodys.check(address, 'ipv4');
    case 6:
      return given.check(address, 'ipv6') && !special.check(address, 'ipv6');
    default:
      return false;
  }
}

/** Whom an address stands for. Pure. */

const HALF = 4;
const V4_IN_V6 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** An IPv6 host can take any address of its /64: they count as one. `ip` is as Node gives it. */
export function clientAddressKey(ip: string): string {
  const v4 = V4_IN_V6.exec(ip)?.[1];
  if (v4 !== undefined) return v4;
  if (!ip.includes(':')) return ip;
  const [head = '', tail] = ip.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 2 * HALF - before.length - after.length);
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...after];
  return `${groups.slice(0, HALF).join(':')}::/64`;
}
