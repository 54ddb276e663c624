import { expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { HOST_CHECKS, type HostFacts } from './host.check.ts';

const GIB = 2 ** 30;
const GOOD: HostFacts = {
  kernel: '6.1.0-18-amd64',
  memoryBytes: 64 * GIB,
  reserveBytes: GIB,
  root: true,
};

it.each<[string, string, Partial<HostFacts>]>([
  ['rights', 'ok', {}],
  ['rights', 'unknown', { root: false }],
  ['kernel', 'ok', { kernel: '5.4.0-200-generic' }],
  ['kernel', 'warn', { kernel: '4.18.0-553.el8' }],
  ['memory', 'ok', {}],
  ['memory', 'warn', { reserveBytes: 0 }],
  ['memory', 'fail', { reserveBytes: 64 * GIB }],
])('reports the check %s as %s', (id, status, change) => {
  const found = findingsOf(HOST_CHECKS, { ...GOOD, ...change }).find((each) => each.id === id);
  expect(found?.status).toBe(status);
});
