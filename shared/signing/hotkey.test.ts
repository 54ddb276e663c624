import { decodeAddress, encodeAddress } from '@polkadot/util-crypto';
import { expect, it } from 'vitest';
import { Hotkey, hotkeyOf, publicKeyOf } from './hotkey.ts';

/** The well-known development account of Substrate. */
const ALICE = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const ALICE_KEY = 'd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d';
const key = new Uint8Array(Buffer.from(ALICE_KEY, 'hex'));

it('encodes and decodes addresses with prefix 42 like the polkadot library', () => {
  expect(hotkeyOf(key)).toBe(ALICE);
  expect(publicKeyOf(ALICE)).toEqual(key);
  for (let n = 0; n < 64; n += 1) {
    const other = Uint8Array.from({ length: 32 }, (_, at) => (at * 37 + n * 101) % 256);
    expect(hotkeyOf(other)).toBe(encodeAddress(other, 42));
    expect(publicKeyOf(hotkeyOf(other))).toEqual(decodeAddress(hotkeyOf(other)));
  }
  expect(publicKeyOf(hotkeyOf(new Uint8Array(32)))).toEqual(new Uint8Array(32));
});

it.each([
  ['hex', `0x${ALICE_KEY}`],
  ['bare hex', ALICE_KEY],
  ['prefix 0', encodeAddress(key, 0)],
  ['prefix 2', encodeAddress(key, 2)],
  ['a two byte prefix', encodeAddress(key, 255)],
  ['a bad checksum', `${ALICE.slice(0, -1)}Z`],
  ['a changed character', ALICE.replace('a', 'b')],
  ['a shorter key', encodeAddress(key.slice(0, 8), 42)],
  ['a space', ` ${ALICE}`],
  ['an end of line', `${ALICE}\n`],
  ['letters outside base58', ALICE.replace('G', '0')],
  ['nothing', ''],
])('rejects %s', (_, text) => {
  expect(publicKeyOf(text)).toBeNull();
  expect(Hotkey.safeParse(text).success).toBe(false);
});

it('rejects the same key under every other prefix of one or two bytes', () => {
  for (let prefix = 0; prefix < 16_384; prefix += prefix < 300 ? 1 : 97) {
    // The one-byte prefixes 46 and 47 are reserved.
    if ([42, 46, 47].includes(prefix)) continue;
    if (publicKeyOf(encodeAddress(key, prefix)) !== null) expect(prefix).toBe('refused');
  }
});

it('rejects every address with one character changed, removed or doubled', () => {
  const letters = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
  for (let at = 0; at < ALICE.length; at += 1) {
    const [before, after] = [ALICE.slice(0, at), ALICE.slice(at + 1)];
    const others = [...letters].filter((letter) => letter !== ALICE[at]);
    const wrong = [...others, '', `${ALICE[at]}${ALICE[at]}`].map((put) => before + put + after);
    const accepted = wrong.filter((text) => publicKeyOf(text) !== null);
    // With a checksum of two bytes, one address in 65,536 would pass by chance; none of these does.
    expect(accepted).toEqual([]);
  }
});

it('decodes an address again after a caller changed the returned key', () => {
  publicKeyOf(ALICE)?.fill(0);
  expect(publicKeyOf(ALICE)).toEqual(key);
});

it('rejects a public key of another length', () => {
  expect(() => hotkeyOf(new Uint8Array(31))).toThrow(RangeError);
});
