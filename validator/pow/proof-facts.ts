/** Has an executor prove its work, and puts what came of it in the words of the checks. */
import type { Inventory } from '#shared/agent-api/inventory.ts';
import type { ProofFacts } from '../checks/measured.ts';
import { type Proof, type ProofDeps, type ProofPart, type ProofPlan, prove } from './prove.ts';

/** Sizes of what is asked of every host; the deadline is learned. */
export type ProofSize = Omit<ProofPlan, 'deadline_ms'>;

/** For hosts that earn money: seconds of one core, and some of the memory and the disk. */
export const FULL_PROOF: ProofSize = {
  product: { n: 1_024, rounds: 2 },
  memory: { block_bytes: 4_096, blocks: 32_768, steps: 20_000 },
  disk: { block_bytes: 4_096, blocks: 32_768, steps: 5_000 },
};

/** For a marketplace on one's own machine: that it works at all. */
export const SMALL_PROOF: ProofSize = {
  product: { n: 64, rounds: 1 },
  memory: { block_bytes: 4_096, blocks: 64, steps: 64 },
  disk: { block_bytes: 4_096, blocks: 64, steps: 64 },
};

const FIRST_DEADLINE_MS = 300_000;
const SHORTEST_DEADLINE_MS = 10_000;
/** Above the slowest that is taken: what is late is to be seen as late, not as lost. */
const DEADLINE_FACTOR = 4;
/** A slow way takes no more of the time that is not counted. */
const MAX_LINK_MS = 2_000;

export type ProofAsk = {
  executorId: string;
  size: ProofSize;
  inventory: Inventory;
  /** Null while it is not known. */
  expectedMs: number | null;
  /** What a question takes there and back. */
  linkMs: number;
};

/** Rejects only for what is our own fault. */
export async function proofFacts(deps: ProofDeps, ask: ProofAsk): Promise<ProofFacts> {
  const { size, expectedMs } = ask;
  const deadline =
    expectedMs === null
      ? FIRST_DEADLINE_MS
      : Math.min(FIRST_DEADLINE_MS, Math.max(SHORTEST_DEADLINE_MS, expectedMs * DEADLINE_FACTOR));
  const proof = await prove(deps, ask.executorId, { ...size, deadline_ms: Math.ceil(deadline) });
  const parts = (['product', 'memory', 'disk'] as const).filter((part) => size[part] !== null);
  return factsOf(proof, parts, ask);
}

function factsOf(proof: Proof, parts: ProofPart[], { expectedMs, linkMs }: ProofAsk): ProofFacts {
  const nothing = { reason: null, part: null, detail: '', ms: null, expected_ms: expectedMs };
  const base = { ...nothing, parts, roots: [], openings_hash: null, repeated: false };
  switch (proof.status) {
    case 'not_measured':
      return { ...base, status: 'not_measured', detail: proof.detail };
    case 'failed':
      return {
        ...base,
        status: proof.fault === 'POW_REFUSED' ? 'refused' : 'failed',
        reason: proof.fault,
        part: proof.part,
        detail: proof.detail,
      };
    case 'proven':
      return {
        ...base,
        status: 'proven',
        ms: Math.max(0, proof.wallMs - Math.min(linkMs, MAX_LINK_MS)),
        roots: proof.commitment.product?.roots ?? [],
        openings_hash: proof.openingsHash,
      };
  }
}
