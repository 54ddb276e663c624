import { expect, it } from 'vitest';
import { centralOptionsFrom, localAdapters } from './central-settings.ts';

it('raises the limits per address and allows no origin by default', () => {
  const { rateLimits, corsOrigins } = centralOptionsFrom({ CENTRAL_DATABASE: 'x' });
  expect(rateLimits?.address.quota).toBeGreaterThanOrEqual(60_000);
  expect(corsOrigins).toEqual([]);
});

it('sends webhooks to this host only while other hosts cannot reach the marketplace', () => {
  const targetsAt = (host: string, environment = {}) =>
    localAdapters(environment, host).CENTRAL_WEBHOOK_TARGETS;
  expect(targetsAt('127.0.0.1')).toBe('loopback');
  expect(targetsAt('10.0.0.5')).toBe('public');
  expect(() => targetsAt('10.0.0.5', { CENTRAL_WEBHOOK_TARGETS: 'loopback' })).toThrow(
    /needs a central API that listens on loopback, not on 10.0.0.5/,
  );
});

it('reads limits and origins from variables', () => {
  const { rateLimits, corsOrigins } = centralOptionsFrom({
    CENTRAL_RATE_LIMIT_ADDRESS: '5',
    CENTRAL_CORS_ORIGINS: 'https://a.example.org, http://localhost:3000',
  });
  expect(rateLimits?.address).toEqual({ quota: 5, windowMs: 60_000 });
  expect(corsOrigins).toEqual(['https://a.example.org', 'http://localhost:3000']);
});

it.each([
  ['CENTRAL_RATE_LIMIT_ADDRESS', '0'],
  ['CENTRAL_RATE_LIMIT_LOGIN', 'many'],
  ['CENTRAL_CORS_ORIGINS', 'https://a.example.org/'],
  ['CENTRAL_CORS_ORIGINS', 'example.org'],
])('rejects %s=%s and names the variable', (name, value) => {
  expect(() => centralOptionsFrom({ [name]: value })).toThrow(name);
});
