/**
 * Random values of one party, as the keystream of AES-256-CTR: a fraction of the time of `derivedRandom`, but with some
 * KiB of memory. For the few parties that need many values.
 */
import { createCipheriv, createHash } from 'node:crypto';
import { type Random, randomFrom } from '#shared/runtime/random.ts';

const CHUNK_BYTES = 4_096;
const ZEROS = new Uint8Array(CHUNK_BYTES);
const COUNTER = new Uint8Array(16);

/** Equal seeds and labels return equal values. */
export function streamRandom(seed: string, label: string): Random {
  const key = createHash('sha256').update(`${seed}\n${label}`).digest();
  const cipher = createCipheriv('aes-256-ctr', key, COUNTER);
  let chunk = cipher.update(ZEROS);
  let used = 0;
  return randomFrom((length) => {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += 1) {
      if (used === chunk.length) [chunk, used] = [cipher.update(ZEROS), 0];
      bytes[at] = chunk[used] ?? 0;
      used += 1;
    }
    return bytes;
  });
}
