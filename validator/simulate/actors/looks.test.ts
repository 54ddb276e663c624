import { expect, it } from 'vitest';
import { looksUntil } from './looks.ts';

it('doubles the pause between requests, up to five minutes', () => {
  expect(looksUntil(800_000).map((ms) => ms / 1_000)).toEqual([15, 45, 105, 225, 465, 765, 1_065]);
  expect(looksUntil(0)).toEqual([15_000]);
});
