import { expect, it } from 'vitest';
import { isLocalRegistry, registryHostOf } from './registry-host.ts';

it.each([
  ['ubuntu:24.04', null],
  ['library/ubuntu', null],
  ['ghcr.io/a/b:1', 'ghcr.io'],
  ['registry.example.com:5000/a', 'registry.example.com'],
  ['localhost/a', 'localhost'],
  ['LOCALHOST/a', 'localhost'],
  ['localhost:5000/a', 'localhost'],
  ['169.254.169.254/x/y', '169.254.169.254'],
])('%s comes from %s', (reference, host) => {
  expect(registryHostOf(reference)).toBe(host);
});

it.each([
  ['169.254.169.254', true],
  ['127.0.0.1', true],
  ['10.0.0.7', true],
  ['172.31.0.1', true],
  ['192.168.1.1', true],
  ['127.1', true],
  ['2130706433', true],
  ['0x7f000001', true],
  ['localhost', true],
  ['router', true],
  ['metadata.google.internal', true],
  ['8.8.8.8', false],
  ['172.32.0.1', false],
  ['docker.io', false],
  ['registry.example.com', false],
])('%s is local: %s', (host, local) => {
  expect(isLocalRegistry(host)).toBe(local);
});
