import { expect, it } from 'vitest';
import { systemRandom } from '../runtime/random.ts';
import { createSealing } from './sealing.ts';

const sealing = createSealing({ key: systemRandom.bytes(32), random: systemRandom });

it('decrypts its own output, which does not contain the plain text', () => {
  const sealed = sealing.seal('s3cret: ä', 'pod 1');
  expect(sealed).not.toContain('s3cret');
  expect(sealing.seal('s3cret: ä', 'pod 1')).not.toBe(sealed);
  expect(sealing.open(sealed, 'pod 1')).toBe('s3cret: ä');
});

it('does not decrypt for another place, with another key, or after the text was changed', () => {
  const sealed = sealing.seal('s3cret', 'pod 1');
  const other = createSealing({ key: systemRandom.bytes(32), random: systemRandom });
  const changed = `${sealed.startsWith('A') ? 'B' : 'A'}${sealed.slice(1)}`;
  expect(() => sealing.open(sealed, 'pod 2')).toThrow();
  expect(() => other.open(sealed, 'pod 1')).toThrow();
  expect(() => sealing.open(changed, 'pod 1')).toThrow();
  expect(() => sealing.open('', 'pod 1')).toThrow();
});
