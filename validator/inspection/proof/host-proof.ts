/** Proof of work of one host's processor, memory and disk: a challenge, its commitment, then rows and fills. */
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
  msWithoutRoundTrip,
} from './challenge.ts';
import { checkFill, type FillSize, toRequest } from './fill-check.ts';
import { FULL_GPU_PROOF, type GpuProofSize, SMALL_GPU_PROOF } from './gpu-proof.ts';

/** Parts of the challenge; null parts are left out. */
export type ProofParts = {
  product: ChallengeRequest['product'];
  memory: FillSize | null;
  disk: FillSize | null;
};
export type ProofPlan = ProofParts & {
  deadlineMs: number;
  /** Network round trip. */
  roundTripMs: number;
};

export type ProofPart = 'product' | 'memory' | 'disk';

type PartFault = 'POW_MISMATCH' | 'POW_TIMEOUT' | 'GPU_PROOF_MISSING';

export type Proof =
  | { status: 'proven'; wallMs: number; commitment: Commitment; openingsHash: string | null }
  | { status: 'failed'; fault: PartFault; part: ProofPart; detail: string }
  | ChallengeFailure;

/** Rejects only for errors of the validator. */
export function prove(deps: ChallengeDeps, executorId: string, plan: ProofPlan): Promise<Proof> {
  const { product, memory, disk, deadlineMs: deadline_ms } = plan;
  const fills = { memory: memory && toRequest(memory), disk: disk && toRequest(disk) };
  const request = { product, ...fills, deadline_ms, executor_id: executorId, gpu: null };
  return challenge(deps, request, (committing) => check(deps, plan, committing));
}

async function check(deps: ChallengeDeps, plan: ProofPlan, committing: Committing): Promise<Proof> {
  const { request, commitment, wallMs } = committing;
  const product = await productIn(deps, committing);
  if (product.detail !== null) return failed('POW_MISMATCH', 'product', product.detail);
  for (const device of ['memory', 'disk'] as const) {
    const [size, filled] = [plan[device], commitment[device]];
    if (size === null) continue;
    if (filled === null) return failed('GPU_PROOF_MISSING', device, NO_PROGRAM);
    const { challenge_id: challengeId } = request;
    const { roundTripMs } = plan;
    const seed = seedFor(request, device);
    const { root } = filled;
    const fault = await checkFill(deps, { challengeId, device, seed, size, root, roundTripMs });
    if (fault !== null) return failed(fault.reason, device, fault.detail);
  }
  return { status: 'proven', wallMs, commitment, openingsHash: product.openingsHash };
}

const NO_PROGRAM = 'The agent has no program for proofs of memory and disk';

function failed(fault: PartFault, part: ProofPart, detail: string): Proof {
  return { status: 'failed', fault, part, detail };
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
export type ProofSize = ProofParts & { gpu: GpuProofSize };

/** Blocks in one sequence: 128 MiB. */
const BLOCKS = 131_072;
const SEQUENCE = { kind: 'fill', lanes: 1 } as const;

/** For production: seconds of one core and a sample of memory and disk. A hard disk answers 256 reads in 3 s. */
export const FULL_PROOF: ProofSize = {
  product: { n: 1_024, rounds: 2 },
  memory: { ...SEQUENCE, lane_blocks: 2 * BLOCKS, steps: 4_096, readMs: 2_000 },
  disk: { ...SEQUENCE, lane_blocks: BLOCKS, steps: 256, readMs: 5_000 },
  gpu: FULL_GPU_PROOF,
};

/** For a local marketplace, whose agents have no proof program: shows only that proofs work. */
export const SMALL_PROOF: ProofSize = {
  product: { n: 64, rounds: 1 },
  memory: null,
  disk: null,
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
    deadlineMs: deadlineFor(request.expected),
    roundTripMs: request.roundTripMs,
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
    case 'unsupported':
      return { ...base, status: 'failed', reason: 'GPU_PROOF_MISSING', detail: proof.detail };
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
