import { expect, it } from 'vitest';
import { distanceMiles } from './place-constraints.ts';

it('computes great-circle distances, also across the date line', () => {
  const paris = { lat: 48.8566, lon: 2.3522 };
  const london = { lat: 51.5074, lon: -0.1278 };
  expect(distanceMiles(paris, london)).toBeCloseTo(213.5, 0);
  expect(distanceMiles(paris, paris)).toBe(0);
  expect(distanceMiles({ lat: 0, lon: 179.5 }, { lat: 0, lon: -179.5 })).toBeCloseTo(69.1, 0);
});
