/** Randomness that repeats: the same seed repeats the same run. */
import type { Random } from '#shared/runtime/random.ts';

const MODULUS = 2 ** 32;

/** Creates a generator, which is not cryptographically secure. */
export function createSeededRandom(seed: number): Random {
  let state = seed >>> 0;
  /** Steps of the mulberry32 generator. */
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }
  const int = (maxExclusive: number) => Math.floor((next() / MODULUS) * maxExclusive);
  const bytes = (length: number) => Uint8Array.from({ length }, () => int(256));
  return {
    int,
    bytes,
    uuid() {
      const hex = Buffer.from(bytes(16)).toString('hex');
      const variant = '89ab'[int(4)];
      const tail = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}`;
      return `${tail}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}
