/** Bytes that whoever knows a seed can make, at any place of the stream: AES-256 in counter mode (validator reference 6). */
import { createCipheriv } from 'node:crypto';

export const SEED_BYTES = 32;
/** What offsets are whole numbers of. */
export const KEYSTREAM_BLOCK = 16;
const COUNTER_LOW_BYTES = 8;

/** `length` bytes from `offset`, a multiple of the block; the key is the seed, the counter begins at zero. */
export function keystream(seed: Uint8Array, offset: number, length: number): Buffer {
  if (offset % KEYSTREAM_BLOCK !== 0) throw new RangeError(`${offset} is within a block`);
  const counter = Buffer.alloc(KEYSTREAM_BLOCK);
  counter.writeBigUInt64BE(BigInt(offset / KEYSTREAM_BLOCK), COUNTER_LOW_BYTES);
  return createCipheriv('aes-256-ctr', seed, counter).update(Buffer.alloc(length));
}

/** The same from the beginning on, piece after piece of any length. */
export function keystreamFrom(seed: Uint8Array): (length: number) => Buffer {
  const cipher = createCipheriv('aes-256-ctr', seed, Buffer.alloc(KEYSTREAM_BLOCK));
  return (length) => cipher.update(Buffer.alloc(length));
}
