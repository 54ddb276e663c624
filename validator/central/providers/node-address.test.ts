import { expect, it } from 'vitest';
import { nodeAddress } from './node-address.ts';

it.each(['8.8.8.8', '2606:4700:4700::1111'])('accepts %s in every setting', (address) => {
  expect(nodeAddress(address, 'public')).toBe(address);
  expect(nodeAddress(address, 'private')).toBe(address);
});

it.each([
  '10.1.2.3',
  '127.0.0.1',
  '192.168.1.1',
  '100.64.0.1',
  '::1',
  'fd00::1',
  '::ffff:10.0.0.1',
])('accepts %s only if private addresses are allowed', (address) => {
  expect(() => nodeAddress(address, 'public')).toThrow(/cannot have the address/);
  expect(nodeAddress(address, 'private')).not.toBe('');
});

it.each(['0.0.0.0', '169.254.169.254', '::', 'fe80::1', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1'])(
  'rejects %s in every setting',
  (address) => {
    for (const places of ['public', 'private'] as const) {
      expect(() => nodeAddress(address, places)).toThrow(/cannot have the address/);
    }
  },
);
