import { expect, it } from 'vitest';
import { streamRandom } from './stream-random.ts';

it('repeats the values of a seed and label, whatever the lengths in which they are drawn', () => {
  const whole = streamRandom('seed', 'label').bytes(10_000);
  const parts = streamRandom('seed', 'label');
  const drawn = [1, 4_095, 4_096, 1_808].map((length) => parts.bytes(length));
  expect(Buffer.concat(drawn).equals(whole)).toBe(true);
  expect(new Set(whole).size).toBe(256);
  expect(streamRandom('seed', 'other').bytes(32)).not.toEqual(whole.slice(0, 32));
  expect(streamRandom('another', 'label').bytes(32)).not.toEqual(whole.slice(0, 32));
});
