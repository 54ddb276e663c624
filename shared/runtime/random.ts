/** Randomness as a port, so that runs can be replayed. The only user of the system's random source. */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';

export type Random = {
  /** A version 4 UUID, lower case. */
  uuid(): string;
  /** `length` random bytes, fit for keys and nonces. */
  bytes(length: number): Uint8Array;
  /** An integer in [0, maxExclusive). */
  int(maxExclusive: number): number;
};

/** The operating system's random source. */
export const systemRandom: Random = {
  uuid: () => randomUUID(),
  bytes: (length) => new Uint8Array(randomBytes(length)),
  int: (maxExclusive) => randomInt(maxExclusive),
};

/** `byteLength` random bytes as unpadded base64url text. */
export function randomToken(random: Random, byteLength: number): string {
  return Buffer.from(random.bytes(byteLength)).toString('base64url');
}
