/** What joins the cards of a node, from its topology (contract 3.1, `interconnect`). Pure. */
import { z } from 'zod';
import type { GpuTopology } from '#shared/api/agent/inventory.ts';

export const Interconnect = z.object({
  /** Whether NVLink joins every two cards. */
  nvlink: z.boolean(),
  /** The fewest links between two cards that are joined. */
  nvlink_links: z.int().nullable(),
  gpu_pairs: z.int(),
  nvlink_pairs: z.int(),
  /** The farthest way over PCIe between two cards that NVLink does not join: `PIX` to `SYS`. */
  pcie_class: z.string().nullable(),
  /** Nobody tries it. */
  p2p: z.boolean().nullable(),
  /** From each card to each, as nvidia-smi names the ways. */
  matrix: z.array(z.array(z.string())),
});
export type Interconnect = z.output<typeof Interconnect>;

/** From near to far. */
const PCIE_CLASSES = ['PIX', 'PXB', 'PHB', 'NODE', 'SYS'];
const NVLINK = /^NV(\d{1,3})$/;

/** Null where the topology is not known. */
export function interconnectOf(topology: GpuTopology | null): Interconnect | null {
  if (topology === null) return null;
  const matrix = topology.gpus.map(({ links }) => links);
  // Every pair once: the matrix says the same from both sides.
  const pairs = matrix.flatMap((links, row) => links.slice(row + 1));
  const links = pairs.flatMap((way) => NVLINK.exec(way)?.[1] ?? []).map(Number);
  const far = PCIE_CLASSES.findLast((name) => pairs.includes(name));
  return {
    nvlink: pairs.length > 0 && links.length === pairs.length,
    nvlink_links: links.length === 0 ? null : Math.min(...links),
    gpu_pairs: pairs.length,
    nvlink_pairs: links.length,
    pcie_class: far ?? null,
    p2p: null,
    matrix,
  };
}

/** In one word, for rows: `NVLink`, or the PCIe class; null where nothing is known. */
export function interconnectName(interconnect: Interconnect | null): string | null {
  if (interconnect === null || interconnect.gpu_pairs === 0) return null;
  return interconnect.nvlink ? 'NVLink' : interconnect.pcie_class;
}
