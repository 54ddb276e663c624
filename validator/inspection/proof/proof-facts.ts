/** Has an executor prove its work, and puts what came of it in the words of the checks. */
import type { ProofFacts } from '../../checks/measured.ts';
import type { Expected } from '../../checks/proof-pace.ts';
import type { ChallengeDeps } from './challenge.ts';
import { FULL_GPU_PROOF, type GpuProofSize, SMALL_GPU_PROOF } from './gpu-proof-facts.ts';
import { deadlineFor, msWithoutLink } from './proof-timing.ts';
import { type Proof, type ProofPart, type ProofPlan, prove } from './prove.ts';

/** Sizes of what is asked of every host, and of each of its cards; the deadline is learned. */
export type ProofSize = Omit<ProofPlan, 'deadline_ms'> & { gpu: GpuProofSize };

/** For hosts that earn money: seconds of one core, and some of the memory and the disk. */
export const FULL_PROOF: ProofSize = {
  product: { n: 1_024, rounds: 2 },
  memory: { block_bytes: 4_096, blocks: 32_768, steps: 20_000 },
  disk: { block_bytes: 4_096, blocks: 32_768, steps: 5_000 },
  gpu: FULL_GPU_PROOF,
};

/** For a marketplace on one's own machine: that it works at all. */
export const SMALL_PROOF: ProofSize = {
  product: { n: 64, rounds: 1 },
  memory: { block_bytes: 4_096, blocks: 64, steps: 64 },
  disk: { block_bytes: 4_096, blocks: 64, steps: 64 },
  gpu: SMALL_GPU_PROOF,
};

export type ProofAsk = {
  executorId: string;
  size: ProofSize;
  expected: Expected;
  /** What a question takes there and back. */
  linkMs: number;
};

/** Rejects only for what is our own fault. */
export async function proofFacts(deps: ChallengeDeps, ask: ProofAsk): Promise<ProofFacts> {
  const { gpu: _, ...size } = ask.size;
  const proof = await prove(deps, ask.executorId, {
    ...size,
    deadline_ms: deadlineFor(ask.expected),
  });
  const parts = (['product', 'memory', 'disk'] as const).filter((part) => size[part] !== null);
  return factsOf(proof, parts, ask);
}

function factsOf(proof: Proof, parts: ProofPart[], { expected, linkMs }: ProofAsk): ProofFacts {
  const nothing = { reason: null, part: null, detail: '', ms: null, wall_ms: null };
  const { modelMs: expected_ms, others } = expected;
  const known = { device: 'cpu', expected_ms, others } as const;
  const base = { ...nothing, ...known, parts, roots: [], openings_hash: null, repeated: false };
  switch (proof.status) {
    case 'not_measured':
      return { ...base, status: 'not_measured', detail: proof.detail };
    case 'failed':
      return {
        ...base,
        status: proof.fault === 'POW_REFUSED' ? 'refused' : 'failed',
        reason: proof.fault,
        part: 'part' in proof ? proof.part : null,
        detail: proof.detail,
      };
    case 'proven':
      return {
        ...base,
        status: 'proven',
        ms: msWithoutLink(proof.wallMs, linkMs),
        wall_ms: proof.wallMs,
        roots: proof.commitment.product?.roots ?? [],
        openings_hash: proof.openingsHash,
      };
  }
}
