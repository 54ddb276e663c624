import { expect, it } from 'vitest';
import type { HostFacts } from './host-probe.ts';
import { sharedCores, sharedFacts } from './host-share.ts';

const FACTS = {
  cpu: { model: 'x', cores: 9, utilization_percent: 5 },
  memory: { total_kib: 1_001, available_kib: 900 },
  disk: { path: '/', total_kib: 10, free_kib: 5 },
} as HostFacts;

it('offers everything by default', () => {
  expect(sharedFacts(FACTS, 100)).toEqual(FACTS);
});

it('the shares of all agents of a host never exceed its memory and cores', () => {
  for (const agents of [2, 3, 8]) {
    const share = Math.floor(100 / agents);
    const { cpu, memory } = sharedFacts(FACTS, share);
    expect(cpu.cores * agents).toBeLessThanOrEqual(FACTS.cpu.cores);
    expect(memory.total_kib * agents).toBeLessThanOrEqual(FACTS.memory.total_kib);
    expect(memory.available_kib).toBeLessThanOrEqual(memory.total_kib);
  }
});

it('offers at least one core', () => {
  expect(sharedCores(2, 12)).toBe(1);
});
