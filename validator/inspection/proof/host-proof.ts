/**
 * Proof of work of one host's processor, memory and disk. The validator sends a challenge, receives the host's
 * commitment, and verifies rows of the matrix product and the results of the random reads (walks).
 */
import type { ChallengeRequest, Commitment } from '#shared/api/agent/challenges.ts';
import { type Purpose, seedOf } from '#shared/proof-of-work/seed.ts';
import type { ProofFacts } from '../../checks/measured.ts';
import type { Expected } from '../../checks/proof-baseline.service.ts';
import {
  type ChallengeDeps,
  type ChallengeFailure,
  type Committing,
  challenge,
  checkProduct,
  deadlineFor,
  isWalkCorrect,
  msWithoutRoundTrip,
} from './challenge.ts';
import { FULL_GPU_PROOF, type GpuProofSize, SMALL_GPU_PROOF } from './gpu-proof.ts';

/** Parts of the challenge; null parts are left out. */
export type ProofPlan = Pick<ChallengeRequest, 'deadline_ms' | 'product' | 'memory' | 'disk'>;

export type ProofPart = 'product' | 'memory' | 'disk';

export type Proof =
  | { status: 'proven'; wallMs: number; commitment: Commitment; openingsHash: string | null }
  | { status: 'failed'; fault: 'POW_MISMATCH'; part: ProofPart; detail: string }
  | ChallengeFailure;

/** Rejects only for errors of the validator. */
export function prove(deps: ChallengeDeps, executorId: string, plan: ProofPlan): Promise<Proof> {
  const request = { ...plan, executor_id: executorId, gpu: null };
  return challenge(deps, request, (committing) => check(deps, committing));
}

async function check(deps: ChallengeDeps, committing: Committing): Promise<Proof> {
  const { request, commitment, wallMs } = committing;
  const product = await productIn(deps, committing);
  if (product.detail !== null) return mismatch('product', product.detail);
  for (const part of ['memory', 'disk'] as const) {
    const asked = request[part];
    const walk = { seed: seedFor(request, part), digest: commitment[part]?.digest };
    if (asked !== null && !(await isWalkCorrect(deps, { ...walk, asked }))) {
      return mismatch(part, `The reads from ${part} have a wrong result`);
    }
  }
  return { status: 'proven', wallMs, commitment, openingsHash: product.openingsHash };
}

function mismatch(part: ProofPart, detail: string): Proof {
  return { status: 'failed', fault: 'POW_MISMATCH', part, detail };
}

async function productIn(deps: ChallengeDeps, { request, commitment }: Committing) {
  const { product: asked, challenge_id: challengeId } = request;
  if (asked === null) return { detail: null, openingsHash: null };
  return checkProduct(deps, {
    challengeId,
    card: null,
    seed: seedFor(request, 'product'),
    ...asked,
    roots: commitment.product?.roots ?? [],
  });
}

function seedFor({ nonce, executor_id: executorId }: ChallengeRequest, purpose: Purpose): Buffer {
  return seedOf({ nonce, executorId, device: purpose === 'product' ? 'cpu' : purpose, purpose });
}

/** Sizes of the proofs of every host and of each of its cards. Deadlines are derived from earlier proofs. */
export type ProofSize = Omit<ProofPlan, 'deadline_ms'> & { gpu: GpuProofSize };

/**
 * For production: a matrix product that takes one core some seconds, and random reads from 128 MiB of memory and
 * 128 MiB of disk.
 */
export const FULL_PROOF: ProofSize = {
  product: { n: 1_024, rounds: 2 },
  memory: { block_bytes: 4_096, blocks: 32_768, steps: 20_000 },
  disk: { block_bytes: 4_096, blocks: 32_768, steps: 5_000 },
  gpu: FULL_GPU_PROOF,
};

/** For a local marketplace: shows only that proofs work. */
export const SMALL_PROOF: ProofSize = {
  product: { n: 64, rounds: 1 },
  memory: { block_bytes: 4_096, blocks: 64, steps: 64 },
  disk: { block_bytes: 4_096, blocks: 64, steps: 64 },
  gpu: SMALL_GPU_PROOF,
};

export type ProofRequest = {
  executorId: string;
  size: ProofSize;
  expected: Expected;
  /** Network round trip. */
  roundTripMs: number;
};

/** Runs the proof and converts the result to facts for the checks. Rejects only for errors of the validator. */
export async function proofFacts(deps: ChallengeDeps, request: ProofRequest): Promise<ProofFacts> {
  const { gpu: _, ...size } = request.size;
  const proof = await prove(deps, request.executorId, {
    ...size,
    deadline_ms: deadlineFor(request.expected),
  });
  const parts = (['product', 'memory', 'disk'] as const).filter((part) => size[part] !== null);
  return factsOf(proof, parts, request);
}

function factsOf(
  proof: Proof,
  parts: ProofPart[],
  { expected, roundTripMs }: ProofRequest,
): ProofFacts {
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
        ms: msWithoutRoundTrip(proof.wallMs, roundTripMs),
        wall_ms: proof.wallMs,
        roots: proof.commitment.product?.roots ?? [],
        openings_hash: proof.openingsHash,
      };
  }
}
