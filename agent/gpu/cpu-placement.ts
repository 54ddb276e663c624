/** Chooses the processors and memory close to a pod's GPUs (NUMA). */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GpuTopology } from '#shared/api/agent/inventory.ts';
import type { PodSpec } from '#shared/api/agent/pod.ts';
import type { GpuDriver } from './gpu-driver.ts';

/** `memoryNodes` is null if the NUMA node has too little memory for the pod. */
export type CpuPlacement = { cpus: string; memoryNodes: string | null };

export type PlacementRequest = {
  /** Cards of the pod, including the parents of MIG devices. */
  cardUuids: readonly string[];
  cpuCores: number;
  memoryBytes: number;
};

/** Share of a node's memory that a pod may be bound to; the kernel and other processes need the remaining memory. */
const MEMORY_SHARE = 0.9;

/**
 * Returns the NUMA node that all cards of the pod share, if the host has several nodes and this node has enough
 * processors. Otherwise returns null, and the pod is not bound to a node. Pure.
 */
export function cpuPlacement(
  request: PlacementRequest,
  topology: GpuTopology | null,
  nodes: readonly NumaNode[],
): CpuPlacement | null {
  const numaNodes = new Set(
    request.cardUuids.map((uuid) => topology?.gpus.find((gpu) => gpu.uuid === uuid)?.numa_node),
  );
  const [id] = numaNodes;
  const node = nodes.find((other) => other.id === id);
  if (numaNodes.size !== 1 || node === undefined || nodes.length < 2) return null;
  if (countCpus(node.cpus) < request.cpuCores) return null;
  const fits = request.memoryBytes <= node.memoryBytes * MEMORY_SHARE;
  return { cpus: node.cpus, memoryNodes: fits ? String(node.id) : null };
}

/** Counts the processors of a list: `0-3,8` -> 5; 0 if the text is not such a list. */
export function countCpus(list: string): number {
  if (!/^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$/.test(list)) return 0;
  return list.split(',').reduce((sum, range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return sum + Math.max(0, last - first + 1);
  }, 0);
}

export type NumaNode = {
  id: number;
  /** Processors of the node, for example `0-19,40-59`. */
  cpus: string;
  memoryBytes: number;
};

const NODES = '/sys/devices/system/node';
const MAX_NODES = 64;
const BYTES_PER_KIB = 1_024;

/** Reads the NUMA nodes of this host, by number; empty if the kernel does not list them. */
export async function readNumaNodes(folder: string = NODES): Promise<NumaNode[]> {
  const names = await readdir(folder).catch(() => []);
  const ids = names.flatMap((name) => /^node(\d{1,4})$/.exec(name)?.[1] ?? []).map(Number);
  const nodes = ids
    .toSorted((a, b) => a - b)
    .slice(0, MAX_NODES)
    .map(async (id) => {
      const file = (name: string) =>
        readFile(join(folder, `node${id}`, name), 'utf8').catch(() => '');
      const [cpus, memory] = await Promise.all([file('cpulist'), file('meminfo')]);
      const kib = /MemTotal: +(\d+) kB/.exec(memory)?.[1] ?? '0';
      return { id, cpus: cpus.trim(), memoryBytes: Number(kib) * BYTES_PER_KIB };
    });
  return Promise.all(nodes);
}

/** Returns null without real GPUs, with a single NUMA node, or if the topology is unknown. */
export type PlaceOf = (spec: Pick<PodSpec, 'gpu_uuids' | 'limits'>) => Promise<CpuPlacement | null>;

export function createPlaceOf(driver: GpuDriver, numaNodes: () => Promise<NumaNode[]>): PlaceOf {
  return async ({ gpu_uuids: uuids, limits }) => {
    if (driver.kind !== 'nvidia' || uuids.length === 0) return null;
    const nodes = await numaNodes();
    if (nodes.length < 2) return null;
    const { devices, topology } = await driver.read();
    const cardUuids = uuids.map(
      (uuid) => devices.find((device) => device.uuid === uuid)?.mig?.parent_uuid ?? uuid,
    );
    const { cpu_cores: cpuCores, memory_bytes: memoryBytes } = limits;
    return cpuPlacement({ cardUuids, cpuCores, memoryBytes }, topology, nodes);
  };
}
