/** Proof of work of all cards of one host: one challenge, which every card proves separately. */
import {
  type CardCommitment,
  CardUuid,
  type ChallengeRequest,
} from '#shared/api/agent/challenges.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { seedOf } from '#shared/proof-of-work/seed.ts';
import type { CardProof, GpuProofFacts } from '../../checks/measured.ts';
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

export type CardsPlan = NonNullable<ChallengeRequest['gpu']>;

export type CardsProof =
  | { status: 'answered'; wallMs: number; cards: CardProof[] }
  /** The agent has no program for proofs on cards. */
  | { status: 'missing' }
  | ChallengeFailure;

/** Rejects only for errors of the validator. */
export function proveCards(
  deps: ChallengeDeps,
  executorId: string,
  { gpu, deadlineMs }: { gpu: CardsPlan; deadlineMs: number },
): Promise<CardsProof> {
  const nothing = { product: null, memory: null, disk: null };
  const plan = { ...nothing, executor_id: executorId, deadline_ms: deadlineMs, gpu };
  return challenge<CardsProof>(deps, plan, async (committing) => {
    const { commitment, wallMs } = committing;
    if (commitment.cards === null) return { status: 'missing' };
    const cards: CardProof[] = [];
    for (const asked of gpu.cards) cards.push(await checkCard(deps, committing, gpu, asked));
    return { status: 'answered', wallMs, cards };
  });
}

async function checkCard(
  deps: ChallengeDeps,
  { request, commitment }: Committing,
  { product }: CardsPlan,
  { uuid, memory }: CardsPlan['cards'][number],
): Promise<CardProof> {
  const claimed = commitment.cards?.find((card) => card.uuid === uuid);
  const roots = claimed?.product?.roots ?? [];
  const proof = { uuid, roots, openings_hash: null };
  if (claimed === undefined) {
    return { ...proof, reason: 'DEVICE_ABSENT', detail: 'The answer does not contain this card' };
  }
  if (claimed.fault !== null)
    return { ...proof, reason: claimed.fault.code, detail: claimed.fault.detail };
  const { nonce, executor_id: executorId, challenge_id: challengeId } = request;
  const seedFor = (purpose: 'product' | 'memory') =>
    seedOf({ nonce, executorId, device: uuid, purpose });
  const committed = { challengeId, card: uuid, seed: seedFor('product'), ...product, roots };
  const { detail, openingsHash } = await checkProduct(deps, committed);
  const opened = { ...proof, openings_hash: openingsHash };
  if (detail !== null) return { ...opened, reason: 'POW_MISMATCH', detail };
  if (await isCardWalkCorrect(deps, memory, claimed, seedFor('memory'))) {
    return { ...opened, reason: null, detail: '' };
  }
  return {
    ...opened,
    reason: 'POW_MISMATCH',
    detail: 'The reads from its memory have a wrong result',
  };
}

async function isCardWalkCorrect(
  deps: ChallengeDeps,
  asked: CardsPlan['cards'][number]['memory'],
  claimed: CardCommitment,
  seed: Uint8Array,
): Promise<boolean> {
  return asked === null || isWalkCorrect(deps, { seed, asked, digest: claimed.memory?.digest });
}

/** Work per card: product, filled part of its memory in thousandths, and number of reads. */
export type GpuProofSize = CardsPlan['product'] & { fillPermille: number; steps: number };

/** For production: 17.6 · 10^12 operations, and the share of memory that a driver leaves free. */
export const FULL_GPU_PROOF: GpuProofSize = {
  n: 8_192,
  rounds: 16,
  fillPermille: 870,
  steps: 100_000,
};

/** For a local marketplace: shows only that proofs work. */
export const SMALL_GPU_PROOF: GpuProofSize = { n: 64, rounds: 2, fillPermille: 1, steps: 64 };

/** Block size of reads on a card. */
const BLOCK_BYTES = 64;
const BYTES_PER_MIB = 1024 ** 2;
const ONE_THOUSAND = 1_000;

export type GpuProofRequest = {
  executorId: string;
  size: GpuProofSize;
  inventory: Inventory;
  expected: Expected;
  /** Network round trip. */
  roundTripMs: number;
};

/**
 * Runs the proof and converts the result to facts for the checks. Returns null without a real, unpartitioned card.
 * Rejects only for errors of the validator.
 */
export async function gpuProofFacts(
  deps: ChallengeDeps,
  { executorId, size, inventory, expected, roundTripMs }: GpuProofRequest,
): Promise<GpuProofFacts | null> {
  const gpu = planFor(size, inventory);
  if (gpu === null) return null;
  const proof = await proveCards(deps, executorId, { gpu, deadlineMs: deadlineFor(expected) });
  const base = {
    device: 'gpu' as const,
    reason: null,
    detail: '',
    ms: null,
    repeated: false,
    expected_ms: expected.modelMs,
    others: expected.others,
    wall_ms: null,
    cards: [],
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
      const ms = msWithoutRoundTrip(wall_ms, roundTripMs);
      if (fault === undefined) return { ...base, status: 'proven', ms, wall_ms, cards };
      const { reason, uuid, detail } = fault;
      return {
        ...base,
        status: 'failed',
        reason,
        detail: `${uuid}: ${detail}`,
        ms,
        wall_ms,
        cards,
      };
    }
  }
}

function planFor(
  { n, rounds, fillPermille, steps }: GpuProofSize,
  { gpu }: Inventory,
): CardsPlan | null {
  if (gpu.driver !== 'nvidia') return null;
  const cards = gpu.devices.flatMap(({ uuid, memory_total_mib: mib }) => {
    // UUIDs of MIG devices have another form.
    if (!CardUuid.safeParse(uuid).success) return [];
    const bytes = (mib * BYTES_PER_MIB * fillPermille) / ONE_THOUSAND;
    const blocks = Math.floor(bytes / BLOCK_BYTES);
    return [{ uuid, memory: blocks === 0 ? null : { block_bytes: BLOCK_BYTES, blocks, steps } }];
  });
  return cards.length === 0 ? null : { product: { n, rounds }, cards };
}
