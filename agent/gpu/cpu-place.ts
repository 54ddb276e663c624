/** Which processors and memory lie beside a pod's GPUs (agent reference 9). Pure. */
import type { GpuTopology } from '#shared/api/agent/inventory.ts';
import type { NumaNode } from './numa.ts';

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
