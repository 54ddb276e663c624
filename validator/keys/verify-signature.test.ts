import { getPublicKey } from '@scure/sr25519';
import { expect, it } from 'vitest';
import { derivedRandom } from '#shared/runtime/random.ts';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { createSigner, type LocalSigner, verifySr25519 } from '#shared/signing/sr25519.ts';
import { keyringSigner } from './key-file.ts';
import { verifySignature } from './verify-signature.ts';

const random = derivedRandom('signatures', 'verification');
const MESSAGE = new TextEncoder().encode('podwright-evidence-v2\n{}');
/** Order of the group of ristretto255. */
const ORDER = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;
/** Prime of the field in which points are encoded. */
const PRIME = 2n ** 255n - 19n;
const MARKER = 128;

const numberOf = (bytes: Uint8Array): bigint =>
  BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
const bytesOf = (number: bigint): Uint8Array =>
  new Uint8Array(Buffer.from(number.toString(16).padStart(64, '0'), 'hex').reverse());
const keyOf = ({ hotkey }: LocalSigner): Uint8Array => publicKeyOf(hotkey) ?? new Uint8Array();

/** A signature of its parts: the encoded point and the scalar, with or without the marker of sr25519. */
function signatureOf(point: Uint8Array, scalar: bigint, marker = MARKER): Uint8Array {
  const bytes = Uint8Array.from([...point, ...bytesOf(scalar)]);
  return bytes.with(63, (bytes[63] ?? 0) | marker);
}

function partsOf(signature: Uint8Array) {
  const marked = signature.subarray(32).slice();
  return {
    point: signature.slice(0, 32),
    scalar: numberOf(marked.with(31, (marked[31] ?? 0) & 127)),
  };
}

/** Returns the verdict on which both libraries agree. */
function verdictOf(message: Uint8Array, signature: Uint8Array, key: Uint8Array): boolean {
  const verdict = verifySignature(message, signature, key);
  expect(verifySr25519(message, signature, key)).toBe(verdict);
  return verdict;
}

it('agrees with the other library about random signatures, and about each changed bit', async () => {
  for (let round = 0; round < 12; round += 1) {
    const seed = random.bytes(32);
    const signer = round % 2 === 0 ? createSigner(seed) : await keyringSigner(seed);
    const message = random.bytes(random.int(300));
    const [signature, key] = [signer.sign(message), keyOf(signer)];
    expect(verdictOf(message, signature, key)).toBe(true);
    for (const changed of [signature, key, message]) {
      if (changed.length === 0) continue;
      const at = random.int(changed.length);
      const before = changed[at] ?? 0;
      changed[at] = before ^ (1 << random.int(8));
      expect(verdictOf(message, signature, key)).toBe(false);
      changed[at] = before;
    }
    expect(verdictOf(message, random.bytes(64), key)).toBe(false);
    expect(verdictOf(message, signature, random.bytes(32))).toBe(false);
  }
});

it('rejects each other encoding of a valid signature', () => {
  const signer = createSigner(random.bytes(32));
  const [signature, key] = [signer.sign(MESSAGE), keyOf(signer)];
  const { point, scalar } = partsOf(signature);
  expect(verdictOf(MESSAGE, signatureOf(point, scalar), key)).toBe(true);
  expect(verdictOf(MESSAGE, signatureOf(point, scalar, 0), key)).toBe(false);
  for (let times = 1n; scalar + times * ORDER < 2n ** 255n; times += 1n) {
    expect(verdictOf(MESSAGE, signatureOf(point, scalar + times * ORDER), key)).toBe(false);
  }
  for (const other of [PRIME - numberOf(point), numberOf(point) + 2n ** 255n]) {
    expect(verdictOf(MESSAGE, signatureOf(bytesOf(other), scalar), key)).toBe(false);
  }
  for (const other of [PRIME - numberOf(key), numberOf(key) + 2n ** 255n]) {
    expect(verdictOf(MESSAGE, signature, bytesOf(other))).toBe(false);
  }
});

it('rejects keys for which anyone can sign', () => {
  const scalar = 5n;
  // The library stores scalars of secret keys times eight.
  const point = getPublicKey(Uint8Array.from([...bytesOf(8n * scalar), ...random.bytes(32)]));
  const forged = signatureOf(point, scalar);
  const identity = new Uint8Array(32);
  expect(verdictOf(MESSAGE, forged, identity)).toBe(false);
  expect(verdictOf(MESSAGE, signatureOf(identity, 0n), identity)).toBe(false);
  // Encodings of points of small order on the curve, and of the identity above the prime.
  const ofSmallOrder = [1n, 2n ** 255n, PRIME - 1n, PRIME, PRIME + 1n, 2n * PRIME, 2n ** 256n - 1n];
  for (const key of ofSmallOrder) expect(verdictOf(MESSAGE, forged, bytesOf(key))).toBe(false);
});

it('rejects signatures and keys of another length', () => {
  const signer = createSigner(random.bytes(32));
  const [signature, key] = [signer.sign(MESSAGE), keyOf(signer)];
  const none = new Uint8Array();
  for (const other of [none, signature.subarray(1), Uint8Array.of(...signature, 0)]) {
    expect(verdictOf(MESSAGE, other, key)).toBe(false);
  }
  for (const other of [none, key.subarray(1), Uint8Array.of(...key, 0)]) {
    expect(verdictOf(MESSAGE, signature, other)).toBe(false);
  }
});
