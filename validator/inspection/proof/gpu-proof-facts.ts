/** Has the cards of an executor prove their work, and puts what came of it in the words of the checks. */

import { CardUuid } from '#shared/api/agent/challenges.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { GpuProofFacts } from '../../checks/measured.ts';
import type { Expected } from '../../checks/proof-pace.ts';
import type { ChallengeDeps } from './challenge.ts';
import { deadlineFor, msWithoutLink } from './proof-timing.ts';
import { type CardsPlan, proveCards } from './prove-cards.ts';

/** What each card is asked; how much of its memory is filled, in thousandths, and how often that is read. */
export type GpuProofSize = CardsPlan['product'] & { fillPermille: number; steps: number };

/** For hosts that earn money: 17.6 · 10^12 operations, and what a driver leaves free of the memory. */
export const FULL_GPU_PROOF: GpuProofSize = {
  ...{ n: 8_192, rounds: 16, fillPermille: 870, steps: 100_000 },
};

/** That it works at all. */
export const SMALL_GPU_PROOF: GpuProofSize = { n: 64, rounds: 2, fillPermille: 1, steps: 64 };

/** A card reads in such pieces. */
const BLOCK_BYTES = 64;
const BYTES_PER_MIB = 1024 ** 2;
const ONE_THOUSAND = 1_000;

export type GpuProofAsk = {
  executorId: string;
  size: GpuProofSize;
  inventory: Inventory;
  expected: Expected;
  /** What a question takes there and back. */
  linkMs: number;
};

/** Null where there is no real card that is whole. Rejects only for what is our own fault. */
export async function gpuProofFacts(
  deps: ChallengeDeps,
  { executorId, size, inventory, expected, linkMs }: GpuProofAsk,
): Promise<GpuProofFacts | null> {
  const gpu = planFor(size, inventory);
  if (gpu === null) return null;
  const proof = await proveCards(deps, executorId, { gpu, deadlineMs: deadlineFor(expected) });
  const base = {
    ...({ device: 'gpu', reason: null, detail: '', ms: null, repeated: false } as const),
    ...{ expected_ms: expected.modelMs, others: expected.others, wall_ms: null, cards: [] },
  };
  switch (proof.status) {
    case 'missing':
      return { ...base, status: 'missing', reason: 'GPU_PROOF_MISSING' };
    case 'not_measured':
      return { ...base, status: 'not_measured', detail: proof.detail };
    case 'failed':
      return { ...base, status: 'failed', reason: proof.fault, detail: proof.detail };
    case 'answered': {
      const { cards, wallMs: wall_ms } = proof;
      const fault = cards.find(({ reason }) => reason !== null);
      const ms = msWithoutLink(wall_ms, linkMs);
      if (fault === undefined) return { ...base, status: 'proven', ms, wall_ms, cards };
      const { reason, uuid, detail } = fault;
      return { ...base, status: 'failed', reason, detail: `${uuid}: ${detail}`, cards };
    }
  }
}

function planFor(
  { n, rounds, fillPermille, steps }: GpuProofSize,
  { gpu }: Inventory,
): CardsPlan | null {
  if (gpu.driver !== 'nvidia') return null;
  const cards = gpu.devices.flatMap(({ uuid, memory_total_mib: mib }) => {
    // Parts of a split card have another form.
    if (!CardUuid.safeParse(uuid).success) return [];
    const bytes = (mib * BYTES_PER_MIB * fillPermille) / ONE_THOUSAND;
    const blocks = Math.floor(bytes / BLOCK_BYTES);
    return [{ uuid, memory: blocks === 0 ? null : { block_bytes: BLOCK_BYTES, blocks, steps } }];
  });
  return cards.length === 0 ? null : { product: { n, rounds }, cards };
}
