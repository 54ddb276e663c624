import { expect, it } from 'vitest';
import { fingerprintOf, idempotencyKeyOf } from './idempotency.ts';

const print = (body: unknown, id = 'a') => fingerprintOf('rent', [id], body);
const base = print({ pod_name: 'x', gpu_count: 1 });

it.each([
  ['key order', { gpu_count: 1, pod_name: 'x' }],
  ['null instead of an absent member', { pod_name: 'x', gpu_count: 1, volume_id: null }],
  ['another notation of the same number', JSON.parse('{"pod_name":"x","gpu_count":1.0}')],
])('%s does not change the fingerprint', (_, body) => {
  expect(print(body)).toBe(base);
});

it.each([
  ['another value', { pod_name: 'x', gpu_count: 2 }],
  ['an explicit default', { pod_name: 'x', gpu_count: 1, enable_jupyter: false }],
  ['another type', { pod_name: 'x', gpu_count: '1' }],
])('%s changes the fingerprint', (_, body) => {
  expect(print(body)).not.toBe(base);
});

it('the fingerprint includes the ids in the path, and distinguishes a list from its element', () => {
  expect(print({ pod_name: 'x', gpu_count: 1 }, 'b')).not.toBe(base);
  expect(print({ user_public_key: 'k' })).not.toBe(print({ user_public_key: ['k'] }));
  expect(print({ a: [1, 2] })).not.toBe(print({ a: [2, 1] }));
});

it.each([undefined, 'a', 'A-z_0.9:', 'x'.repeat(255)])('accepts the key %s', (key) => {
  expect(idempotencyKeyOf(key)).toBe(key ?? null);
});

it.each(['', '"quoted"', 'x'.repeat(256), 'a, b', 'ü', 'a b', 'a\n', 'a\r\nb', '\0', ['a', 'b']])(
  'rejects the key %j',
  (key) => {
    expect(() => idempotencyKeyOf(key)).toThrow(
      expect.objectContaining({ code: 'idempotency_key_invalid' }),
    );
  },
);
