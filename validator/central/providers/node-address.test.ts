import { expect, it } from 'vitest';
import { type AllowedPlaces, nodeAddress } from './node-address.ts';

const PUBLIC: AllowedPlaces = { places: 'public', loopback: true };
const PRIVATE: AllowedPlaces = { places: 'private', loopback: false };
const LOCAL: AllowedPlaces = { places: 'private', loopback: true };

it.each(['8.8.8.8', '2606:4700:4700::1111'])('accepts %s in every setting', (address) => {
  for (const allowed of [PUBLIC, PRIVATE, LOCAL]) {
    expect(nodeAddress(address, allowed)).toBe(address);
  }
});

it.each(['10.1.2.3', '192.168.1.1', '100.64.0.1', 'fd00::1', '::ffff:10.0.0.1'])(
  'accepts %s only if private addresses are allowed',
  (address) => {
    expect(() => nodeAddress(address, PUBLIC)).toThrow(/cannot have the address/);
    expect(nodeAddress(address, PRIVATE)).not.toBe('');
  },
);

it.each(['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1'])(
  'accepts the loopback address %s only if the central API listens on loopback, too',
  (address) => {
    for (const allowed of [PUBLIC, PRIVATE]) {
      expect(() => nodeAddress(address, allowed)).toThrow(/cannot have the address/);
    }
    expect(nodeAddress(address, LOCAL)).not.toBe('');
  },
);

it.each([
  ...['0.0.0.0', '169.254.169.254', '168.63.129.16', '::', 'fe80::1'],
  ...['64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1'],
])('rejects %s in every setting', (address) => {
  for (const allowed of [PUBLIC, PRIVATE, LOCAL]) {
    expect(() => nodeAddress(address, allowed)).toThrow(/cannot have the address/);
  }
});
