import { expect, it } from 'vitest';
import { createReplayCache } from './request-verifier.ts';

it('rejects a repeated nonce of a signer until the nonce expires', () => {
  const cache = createReplayCache(100);
  expect(cache.has('a', 'n', 0)).toBe(false);
  expect(cache.add('a', 'n', 0)).toBe('added');
  expect(cache.has('a', 'n', 99)).toBe(true);
  expect(cache.add('a', 'n', 99)).toBe('seen');
  expect(cache.add('b', 'n', 99)).toBe('added');
  expect(cache.has('a', 'n', 100)).toBe(false);
  expect(cache.add('a', 'n', 100)).toBe('added');
});

it('rejects new nonces when full, instead of evicting a live one', () => {
  const cache = createReplayCache(100, 2);
  cache.add('a', '1', 0);
  cache.add('a', '2', 50);
  expect(cache.add('a', '3', 60)).toBe('full');
  expect(cache.add('a', '1', 60)).toBe('seen');
  expect(cache.add('a', '3', 100)).toBe('added');
  expect(cache.add('a', '4', 100)).toBe('full');
});
