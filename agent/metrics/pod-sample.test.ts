import { expect, it } from 'vitest';
import { type IdleBefore, idleSince, type Use } from './pod-sample.ts';

const UNUSED: Use = {
  atMs: 20_000,
  usedCores: 0.1,
  gpuPercents: [3, 0],
  sessions: 0,
  network: { receivedBytes: 10_480, sentBytes: 10_000 },
};
const BEFORE: IdleBefore = {
  idleSinceMs: 1,
  use: { ...UNUSED, atMs: 10_000, network: { receivedBytes: 0, sentBytes: 0 } },
};

it('sets the start of the idle time at the first idle sample, and keeps it while the pod is idle', () => {
  expect(idleSince(BEFORE, UNUSED)).toBe(1);
  expect(idleSince({ ...BEFORE, idleSinceMs: null }, UNUSED)).toBe(20_000);
  expect(idleSince(BEFORE, { ...UNUSED, gpuPercents: [] })).toBe(1);
});

it.each<[string, Partial<Use>]>([
  ['a busy GPU', { gpuPercents: [0, 3.1] }],
  ['a GPU with unknown utilization', { gpuPercents: [0, null] }],
  ['processor use', { usedCores: 0.101 }],
  ['unknown processor use', { usedCores: null }],
  ['an open session', { sessions: 1 }],
  ['an unknown number of sessions', { sessions: null }],
  ['traffic', { network: { receivedBytes: 10_481, sentBytes: 10_000 } }],
  ['unknown traffic', { network: null }],
  ['traffic counters that were reset', { network: { receivedBytes: -1, sentBytes: 0 } }],
])('counts %s as use', (_, change) => {
  expect(idleSince(BEFORE, { ...UNUSED, ...change })).toBeNull();
});

it('treats gaps between samples and missing measurements as use', () => {
  const late = { ...UNUSED, atMs: 40_001 };
  expect(idleSince(BEFORE, { ...UNUSED, atMs: 40_000 })).toBe(1);
  expect(idleSince(BEFORE, late)).toBe(40_001);
  expect(idleSince(null, UNUSED)).toBeNull();
  expect(idleSince({ ...BEFORE, use: { ...BEFORE.use, network: null } }, UNUSED)).toBeNull();
});
