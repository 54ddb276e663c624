/** Which processors and memory lie beside a pod's GPUs (agent reference 9). Pure. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GpuTopology } from '#shared/api/agent/inventory.ts';
import type { PodSpec } from '#shared/api/agent/pod.ts';
import type { GpuDriver } from './gpu-driver.ts';

/** `memoryNodes` is null where the node has too little memory for the pod. */
export type CpuPlace = { cpus: string; memoryNodes: string | null };

export type PlaceWish = {
  /** The cards, those of MIG devices among them. */
  cardUuids: readonly string[];
  cpuCores: number;
  memoryBytes: number;
};

/** The kernel and everybody else need some of each node too. */
const MEMORY_SHARE = 0.9;

/**
 * The node that all cards lie on, where the host has several and that one can carry the pod; null otherwise:
 * a pod that crosses nodes, or needs more than one has, is not held to any.
 */
export function cpuPlace(
  wish: PlaceWish,
  topology: GpuTopology | null,
  nodes: readonly NumaNode[],
): CpuPlace | null {
  const numaNodes = new Set(
    wish.cardUuids.map((uuid) => topology?.gpus.find((gpu) => gpu.uuid === uuid)?.numa_node),
  );
  const [id] = numaNodes;
  const node = nodes.find((other) => other.id === id);
  if (numaNodes.size !== 1 || node === undefined || nodes.length < 2) return null;
  if (countCpus(node.cpus) < wish.cpuCores) return null;
  const fits = wish.memoryBytes <= node.memoryBytes * MEMORY_SHARE;
  return { cpus: node.cpus, memoryNodes: fits ? String(node.id) : null };
}

/** `0-3,8` -> 5; 0 for what is no such list. */
export function countCpus(list: string): number {
  if (!/^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$/.test(list)) return 0;
  return list.split(',').reduce((sum, range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return sum + Math.max(0, last - first + 1);
  }, 0);
}

// MERGED agent/gpu/cpu-placement.ts: The memory nodes of this host: which processors and how much memory each has.
export type NumaNode = {
  id: number;
  /** `0-19,40-59` */
  cpus: string;
  memoryBytes: number;
};

const NODES = '/sys/devices/system/node';
const MAX_NODES = 64;
const BYTES_PER_KIB = 1_024;

/** By number; empty where the kernel does not tell. */
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

// MERGED agent/gpu/cpu-placement.ts: Where a pod's GPUs lie on this host, asked when its container is made.
/** Null when nothing is to be said of its processors: no real GPUs, one node only, or no knowledge. */
export type PlaceOf = (spec: Pick<PodSpec, 'gpu_uuids' | 'limits'>) => Promise<CpuPlace | null>;

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
    return cpuPlace({ cardUuids, cpuCores, memoryBytes }, topology, nodes);
  };
}
