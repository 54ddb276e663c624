/** Tests that a derived source repeats its values, and how much memory it retains. */
import { expect, it } from 'vitest';
import { collectGarbage } from '../../test/measure/collect-garbage.ts';
import { derivedRandom } from './random.ts';

it('repeats the values of a secret and label, whatever the lengths in which they are drawn', () => {
  const whole = derivedRandom('secret', 'label').bytes(100);
  const parts = derivedRandom('secret', 'label');
  const drawn = [1, 31, 33, 35].map((length) => parts.bytes(length));
  expect(Buffer.concat(drawn).equals(whole)).toBe(true);
  expect(derivedRandom('secret', 'other').bytes(32)).not.toEqual(whole.slice(0, 32));
  expect(derivedRandom('other', 'label').bytes(32)).not.toEqual(whole.slice(0, 32));
});

const SOURCES = 500;
/** More small buffers than Node allocates together. */
const OTHERS = 1_000;

it('retains no more than its unused bytes', () => {
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  const sources = Array.from({ length: SOURCES }, (_, at) => derivedRandom('secret', `${at}`));
  for (const source of sources) {
    source.int(10);
    for (let at = 0; at < OTHERS; at += 1)
      Buffer.from('other values of about a hundred bytes'.repeat(3));
  }
  collectGarbage();
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(SOURCES * 1_000);
  expect(sources.length).toBe(SOURCES);
});
