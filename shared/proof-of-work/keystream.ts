/** A keystream derived from a seed (AES-256 in counter mode), computable at any offset. */
import { createCipheriv } from 'node:crypto';

export const SEED_BYTES = 32;
/** Unit of offsets, which must be multiples of it. */
export const KEYSTREAM_BLOCK = 16;
const COUNTER_LOW_BYTES = 8;

/**
 * Returns `length` bytes from `offset`. The key is the seed; the counter begins at zero. Throws unless `offset` is a
 * multiple of the block.
 */
export function keystream(seed: Uint8Array, offset: number, length: number): Buffer {
  if (offset % KEYSTREAM_BLOCK !== 0)
    throw new RangeError(`${offset} is not a multiple of ${KEYSTREAM_BLOCK}`);
  const counter = Buffer.alloc(KEYSTREAM_BLOCK);
  counter.writeBigUInt64BE(BigInt(offset / KEYSTREAM_BLOCK), COUNTER_LOW_BYTES);
  return createCipheriv('aes-256-ctr', seed, counter).update(Buffer.alloc(length));
}

/** Returns a function that reads the stream from its beginning, in pieces of any length. */
export function keystreamFrom(seed: Uint8Array): (length: number) => Buffer {
  const cipher = createCipheriv('aes-256-ctr', seed, Buffer.alloc(KEYSTREAM_BLOCK));
  return (length) => cipher.update(Buffer.alloc(length));
}
