/** Part of the host that this agent offers, for hosts with several agents. Pure. */
import type { HostFacts } from './host-probe.ts';

const PERCENT = 100;

/** Whole cores, at least one. */
export function sharedCores(cores: number, sharePercent: number): number {
  return Math.max(1, Math.floor((cores * sharePercent) / PERCENT));
}

export function sharedMemory(amount: number, sharePercent: number): number {
  return Math.floor((amount * sharePercent) / PERCENT);
}

/** Returns the facts with the cores and the memory that this agent offers. The disk is not divided. */
export function sharedFacts(facts: HostFacts, sharePercent: number): HostFacts {
  const { cpu, memory } = facts;
  const total_kib = sharedMemory(memory.total_kib, sharePercent);
  return {
    ...facts,
    cpu: { ...cpu, cores: sharedCores(cpu.cores, sharePercent) },
    memory: { total_kib, available_kib: Math.min(memory.available_kib, total_kib) },
  };
}
