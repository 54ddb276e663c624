/** Special-purpose ranges, each with its first and last address and the addresses next to it. */
import { expect, it } from 'vitest';
import { clientAddressKey, isPublicAddress } from './addresses.ts';

it.each([
  ['0.0.0.0', '0.255.255.255', null, '1.0.0.0'],
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['168.63.129.16', '168.63.129.16', '168.63.129.15', '168.63.129.17'],
  ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['192.0.2.0', '192.0.2.255', '192.0.1.255', '192.0.3.0'],
  ['192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['198.51.100.0', '198.51.100.255', '198.51.99.255', '198.51.101.0'],
  ['203.0.113.0', '203.0.113.255', '203.0.112.255', '203.0.114.0'],
  ['224.0.0.0', '255.255.255.255', '223.255.255.255', null],
  ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', '2000:ffff::', '2001:200::'],
  ['2001:db8::', '2001:db8:ffff::ffff', '2001:db7:ffff::', '2001:db9::'],
  ['2002::', '2002:ffff::ffff', '2001:ffff::', '2003::'],
  ['3fff::', '3fff:fff:ffff::', '3ffe:ffff::', '3fff:1000::'],
  ['4000::', 'ffff::', '3fff:ffff::', null],
  ['::', '1fff:ffff::', null, '2000::'],
])('treats all addresses from %s to %s as not public', (first, last, before, after) => {
  expect([first, last].map(isPublicAddress)).toEqual([false, false]);
  for (const neighbour of [before, after]) {
    expect(neighbour === null || isPublicAddress(neighbour)).toBe(true);
  }
});

it.each(['', '8.8.8', '8.8.8.8.8', '::ffff:8.8.8.8', '008.8.8.8', 'fe80::1%eth0', 'example.com'])(
  'treats %j as not public',
  (text) => {
    expect(isPublicAddress(text)).toBe(false);
  },
);

it.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
])('identifies the client %s by %s', (ip, key) => {
  expect(clientAddressKey(ip)).toBe(key);
});

it('has one key for all clients that have disconnected, whose address is unknown', () => {
  expect(clientAddressKey(undefined)).toBe('');
});
