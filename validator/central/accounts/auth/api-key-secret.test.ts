import { expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { apiKeyHash, createApiKeySecrets } from './api-key-secret.ts';

const secrets = createApiKeySecrets({ random: systemRandom, secret: new Uint8Array(32).fill(1) });

it('creates keys in the documented format, which can be found only by their hash', () => {
  const made = secrets.create();
  expect(made.key).toMatch(/^sk_[A-Za-z0-9_-]{43}$/);
  expect(made.prefix + made.suffix).toBe(made.key.slice(0, 10) + made.key.slice(-5));
  expect(made.hash).toBe(apiKeyHash(made.key));
  expect(made.sealed).not.toContain(made.key.slice(3));
  expect(secrets.create().key).not.toBe(made.key);
});

it('opens a sealed key only for the same row and with the same secret', () => {
  const made = secrets.create();
  expect(secrets.open(made.sealed, made.hash)).toBe(made.key);
  expect(() => secrets.open(made.sealed, apiKeyHash('another'))).toThrow();
  const changed = `${made.sealed.startsWith('A') ? 'B' : 'A'}${made.sealed.slice(1)}`;
  expect(() => secrets.open(changed, made.hash)).toThrow();
  expect(() => secrets.open('', made.hash)).toThrow();
  const others = createApiKeySecrets({ random: systemRandom, secret: new Uint8Array(32).fill(2) });
  expect(() => others.open(made.sealed, made.hash)).toThrow();
});

it('rejects a secret that is too short', () => {
  const weak = () => createApiKeySecrets({ random: systemRandom, secret: new Uint8Array(8) });
  expect(weak).toThrow(RangeError);
});
