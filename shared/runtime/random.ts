/** Randomness as a port, so that tests can replay it. The only file that uses the system's random source. */
import { createHmac, randomBytes, randomInt, randomUUID } from 'node:crypto';

export type Random = {
  /** A version 4 UUID, lower case. */
  uuid(): string;
  /** Returns `length` random bytes, suitable for keys and nonces. */
  bytes(length: number): Uint8Array;
  /** Returns an integer in [0, maxExclusive). */
  int(maxExclusive: number): number;
};

export const systemRandom: Random = {
  uuid: () => randomUUID(),
  bytes: (length) => new Uint8Array(randomBytes(length)),
  int: (maxExclusive) => randomInt(maxExclusive),
};

const INT_BYTES = 6;
const BYTE = 256;
const INTS = BYTE ** INT_BYTES;

/** Returns a source whose integers and UUIDs are made of `bytes`. */
export function randomFrom(bytes: Random['bytes']): Random {
  /** Rejects the values above the last multiple of `maxExclusive`, so that all results are equally likely. */
  function int(maxExclusive: number): number {
    for (;;) {
      let value = 0;
      for (const byte of bytes(INT_BYTES)) value = value * BYTE + byte;
      if (value < INTS - (INTS % maxExclusive)) return value % maxExclusive;
    }
  }

  function uuid(): string {
    const hex = Buffer.from(bytes(16)).toString('hex');
    const variant = '89ab'[int(4)];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  return { uuid, bytes, int };
}

const BLOCK_BYTES = 32;

/**
 * Returns a source whose values depend only on the secret and the label, so that a plan can be drawn again. Without the
 * secret the values cannot be predicted. Keys come from `systemRandom`.
 */
export function derivedRandom(secret: string, label: string): Random {
  let blocks = 0;
  let rest = new Uint8Array();

  return randomFrom((length) => {
    const parts = [rest];
    for (let have = rest.length; have < length; have += BLOCK_BYTES) {
      parts.push(createHmac('sha256', secret).update(`${label}\n${blocks}`).digest());
      blocks += 1;
    }
    const all = Buffer.concat(parts);
    // A copy, because a part of a small buffer retains the 64 KiB that Node allocates for many of them.
    rest = new Uint8Array(all.subarray(length));
    return new Uint8Array(all.subarray(0, length));
  });
}

/** Returns `byteLength` random bytes as unpadded base64url. */
export function randomToken(random: Random, byteLength: number): string {
  return Buffer.from(random.bytes(byteLength)).toString('base64url');
}
