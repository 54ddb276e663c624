/** IP address ranges: which addresses are public, and which addresses count as one client. Pure. */
import { BlockList, isIP } from 'node:net';

/** Azure's address for its guest agent, metadata and name service, which hosts outside Azure cannot reach. */
export const WIRE_SERVER = '168.63.129.16';

/**
 * IPv4 ranges for private and shared networks, this host, link-local (including cloud metadata), Azure's wire server,
 * multicast and reserved (RFC 6890).
 */
export const NON_PUBLIC_IPV4: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  `${WIRE_SERVER}/32`,
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/** Range for benchmarks of network devices (RFC 2544). */
export const BENCHMARK_RANGE = '198.18.0.0/15';

/** IPv4 ranges for protocols, documentation and benchmarks (RFC 6890). */
const UNASSIGNED_IPV4 = [
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  BENCHMARK_RANGE,
  '198.51.100.0/24',
  '203.0.113.0/24',
];

/** The IPv6 range for global unicast, and the special-purpose ranges within it. */
const GLOBAL_IPV6 = ['2000::/3'];
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const nonPublic = blockList(NON_PUBLIC_IPV4, 'ipv4');
const unassigned = blockList(UNASSIGNED_IPV4, 'ipv4');
const global = blockList(GLOBAL_IPV6, 'ipv6');
const special = blockList(SPECIAL_IPV6, 'ipv6');

function blockList(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/');
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}

/**
 * Returns true for loopback, private, shared, link-local (including cloud metadata), multicast and reserved IPv4
 * addresses, and for Azure's wire server.
 */
export function isNonPublicIpv4(ipv4: string): boolean {
  return nonPublic.check(ipv4, 'ipv4');
}

/** Returns false for text that is not an address. IPv4-mapped IPv6 addresses are not public. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !isNonPublicIpv4(address) && !unassigned.check(address, 'ipv4');
    case 6:
      return global.check(address, 'ipv6') && !special.check(address, 'ipv6');
    default:
      return false;
  }
}

/** Returns true for names that every host resolves to itself (RFC 6761). */
export function isLocalName(host: string): boolean {
  return /^(?:.+\.)?localhost\.?$/.test(host);
}

const PREFIX_GROUPS = 4;
const V4_IN_V6 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Returns the key that identifies a client: an IPv6 host can use any address of its /64, so they share a key. `ip` is
 * undefined for a client that has disconnected; all of these share the empty key.
 */
export function clientAddressKey(ip: string | undefined): string {
  if (ip === undefined) return '';
  const v4 = V4_IN_V6.exec(ip)?.[1];
  if (v4 !== undefined) return v4;
  if (!ip.includes(':')) return ip;
  const [head = '', tail] = ip.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros =
    tail === undefined ? 0 : Math.max(0, 2 * PREFIX_GROUPS - before.length - after.length);
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...after];
  return `${groups.slice(0, PREFIX_GROUPS).join(':')}::/64`;
}
