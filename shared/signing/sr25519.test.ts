import { Keyring } from '@polkadot/keyring';
import { cryptoWaitReady, sr25519PairFromSeed, sr25519Verify } from '@polkadot/util-crypto';
import { beforeAll, expect, it } from 'vitest';
import { publicKeyOf } from './hotkey.ts';
import { createSigner, signatureFromHex, toHex, verifySr25519 } from './sr25519.ts';

const seed = Uint8Array.from({ length: 32 }, (_, at) => at);
const signer = createSigner(seed);
const publicKey = publicKeyOf(signer.hotkey) ?? new Uint8Array();
const message = new TextEncoder().encode('podwright-req-v1\nGET');

beforeAll(async () => {
  await cryptoWaitReady();
});

it('derives the same address and key as the polkadot library', () => {
  const pair = new Keyring({ type: 'sr25519', ss58Format: 42 }).addFromSeed(seed);
  expect(signer.hotkey).toBe(pair.address);
  expect(publicKey).toEqual(pair.publicKey);
});

it('verifies signatures of the polkadot library, which verifies ours', () => {
  expect(sr25519Verify(message, signer.sign(message), sr25519PairFromSeed(seed).publicKey)).toBe(
    true,
  );
  const pair = new Keyring({ type: 'sr25519' }).addFromSeed(seed);
  expect(verifySr25519(message, pair.sign(message), publicKey)).toBe(true);
  expect(pair.verify(message, signer.sign(message), publicKey)).toBe(true);
});

it('makes a different signature every time', () => {
  expect(toHex(signer.sign(message))).not.toBe(toHex(signer.sign(message)));
});

it('rejects any invalid signature, message or key, and never throws', () => {
  const signature = signer.sign(message);
  const changed = signature.with(5, (signature[5] ?? 0) ^ 1);
  expect(verifySr25519(message, changed, publicKey)).toBe(false);
  expect(verifySr25519(message.slice(1), signature, publicKey)).toBe(false);
  expect(verifySr25519(message, signature, publicKey.with(0, 1))).toBe(false);
  expect(verifySr25519(message, signature.slice(1), publicKey)).toBe(false);
  expect(verifySr25519(message, new Uint8Array(64), publicKey)).toBe(false);
  expect(verifySr25519(message, new Uint8Array(64).fill(255), publicKey)).toBe(false);
  expect(verifySr25519(message, signature, new Uint8Array(3))).toBe(false);
  const prefixed = Uint8Array.of(1, ...signature);
  expect(verifySr25519(message, prefixed, publicKey)).toBe(false);
  // High-level verifiers also accept a signature of the text in an envelope; this one must not.
  const wrapped = new TextEncoder().encode(`<Bytes>${new TextDecoder().decode(message)}</Bytes>`);
  expect(verifySr25519(message, signer.sign(wrapped), publicKey)).toBe(false);
});

it('rejects a seed of another length', () => {
  expect(() => createSigner(new Uint8Array(33))).toThrow(RangeError);
});

it('decodes a signature only as `0x` and lower-case hex', () => {
  const hex = toHex(signer.sign(message));
  expect(toHex(signatureFromHex(hex) ?? new Uint8Array())).toBe(hex);
  for (const bad of [
    hex.slice(2),
    hex.slice(0, -1),
    `${hex}0`,
    hex.replace('0x', '0X'),
    '',
    '0x',
  ]) {
    expect(signatureFromHex(bad)).toBeNull();
  }
  expect(signatureFromHex(`0x${'A'.repeat(128)}`)).toBeNull();
});
