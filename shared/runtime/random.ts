/** Randomness as a port, so that tests can replay it. The only file that uses the system's random source. */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';

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

/** Returns `byteLength` random bytes as unpadded base64url. */
export function randomToken(random: Random, byteLength: number): string {
  return Buffer.from(random.bytes(byteLength)).toString('base64url');
}
