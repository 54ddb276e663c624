/** sr25519 signatures with @scure/sr25519, behind the ports Signer and Verify. */
import { getPublicKey, secretFromSeed, sign, verify } from '@scure/sr25519';
import { type Hotkey, hotkeyOf } from './hotkey.ts';

export type Signer = {
  readonly hotkey: Hotkey;
  /**
   * Returns 64 bytes. Randomised: two signatures of one message differ. Synchronous only if this thread has the key.
   */
  sign(message: Uint8Array): Uint8Array | Promise<Uint8Array>;
};

/** A signer whose key is in this thread's memory. */
export type LocalSigner = Omit<Signer, 'sign'> & { sign(message: Uint8Array): Uint8Array };

/** Returns true only for a 64-byte sr25519 signature of exactly `message`; never throws. */
export type Verify = (message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array) => boolean;

const SEED_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** Creates a signer from a 32-byte seed. */
export function createSigner(seed: Uint8Array): LocalSigner {
  if (seed.length !== SEED_BYTES) throw new RangeError('a seed has 32 bytes');
  const secret = secretFromSeed(seed);
  return {
    hotkey: hotkeyOf(getPublicKey(secret)),
    sign: (message) => sign(secret, message),
  };
}

export const verifySr25519: Verify = (message, signature, publicKey) => {
  if (signature.length !== SIGNATURE_BYTES) return false;
  try {
    return verify(message, signature, publicKey);
  } catch {
    return false;
  }
};

/** Encodes bytes as `0x` and lower-case hex, the form of signatures on the wire. */
export function toHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

/** Decodes `0x` and 128 lower-case hex digits. Null for any other text. */
export function signatureFromHex(text: string): Uint8Array | null {
  return /^0x[0-9a-f]{128}$/.test(text) ? new Uint8Array(Buffer.from(text.slice(2), 'hex')) : null;
}
