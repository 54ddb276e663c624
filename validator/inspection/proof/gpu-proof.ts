/** Proof of work of all cards of one host: one challenge, which every card proves separately. */
import { CardUuid, type ChallengeRequest } from '#shared/api/agent/challenges.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { FILL_BLOCK_BYTES, LANE_STEP } from '#shared/proof-of-work/fill.ts';
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
  msWithoutRoundTrip,
} from './challenge.ts';
import { checkFill, type FillSize, toRequest } from './fill-check.ts';

type Product = NonNullable<ChallengeRequest['gpu']>['product'];
type CardPlan = { uuid: string; memory: FillSize | null };
export type CardsPlan = {
  product: Product;
  cards: CardPlan[];
  deadlineMs: number;
  /** Network round trip. */
  roundTripMs: number;
};

export type CardsProof =
  | { status: 'answered'; wallMs: number; cards: CardProof[] }
  /** The agent has no program for proofs on cards. */
  | { status: 'missing' }
  | ChallengeFailure;

/** Rejects only for errors of the validator. */
export function proveCards(
  deps: ChallengeDeps,
  executorId: string,
  plan: CardsPlan,
): Promise<CardsProof> {
  const { product, deadlineMs: deadline_ms } = plan;
  const nothing = { product: null, memory: null, disk: null };
  const requested = plan.cards.map(({ uuid, memory }) => {
    return { uuid, memory: memory && toRequest(memory) };
  });
  const gpu = { product, cards: requested };
  const request = { ...nothing, executor_id: executorId, deadline_ms, gpu };
  return challenge<CardsProof>(deps, request, async (committing) => {
    const { commitment, wallMs } = committing;
    if (commitment.cards === null) return { status: 'missing' };
    const cards: CardProof[] = [];
    for (const asked of plan.cards) cards.push(await checkCard(deps, committing, plan, asked));
    return { status: 'answered', wallMs, cards };
  });
}

async function checkCard(
  deps: ChallengeDeps,
  { request, commitment }: Committing,
  { product, roundTripMs }: CardsPlan,
  { uuid, memory: size }: CardPlan,
): Promise<CardProof> {
  const claimed = commitment.cards?.find((card) => card.uuid === uuid);
  const roots = claimed?.product?.roots ?? [];
  // The last root depends on all before it.
  const proof = { uuid, roots: roots.slice(-1), openings_hash: null };
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
  const done = { ...opened, reason: null, detail: '' };
  if (size === null) return done;
  const seed = seedFor('memory');
  const root = claimed.memory?.root ?? '';
  const asked = { challengeId, device: uuid, seed, size, root, roundTripMs };
  return { ...done, ...(await checkFill(deps, asked)) };
}

/** Work per card: product, filled part of its memory in thousandths, blocks of a lane, and steps of the walk. */
export type GpuProofSize = Product & { fillPermille: number; laneBlocks: number; steps: number };

/**
 * For production: 2.8 · 10^14 operations, and the share of memory that a driver, the product and the hash tree leave
 * free. Lanes of 256 MiB are long, so that computing a block again takes long, and keep a card busy for a second.
 */
export const FULL_GPU_PROOF: GpuProofSize = {
  n: 8_192,
  rounds: 256,
  fillPermille: 850,
  laneBlocks: 262_144,
  steps: 4_096,
};

/** For a local marketplace: shows only that proofs work. Fills no memory. */
export const SMALL_GPU_PROOF: GpuProofSize = {
  n: 64,
  rounds: 2,
  fillPermille: 0,
  laneBlocks: LANE_STEP,
  steps: 1,
};

/** Milliseconds for a walk over a card. An H100 needs 190 ms. */
const READ_MS = 2_000;
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
  const parts = planFor(size, inventory);
  if (parts === null) return null;
  const plan = { ...parts, deadlineMs: deadlineFor(expected), roundTripMs };
  const proof = await proveCards(deps, executorId, plan);
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
    case 'unsupported':
      return { ...base, status: 'missing', reason: 'GPU_PROOF_MISSING', detail: proof.detail };
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
  { n, rounds, fillPermille, laneBlocks: lane_blocks, steps }: GpuProofSize,
  { gpu }: Inventory,
): Pick<CardsPlan, 'product' | 'cards'> | null {
  if (gpu.driver !== 'nvidia') return null;
  const cards = gpu.devices.flatMap(({ uuid, memory_total_mib: mib }): CardPlan[] => {
    // UUIDs of MIG devices have another form.
    if (!CardUuid.safeParse(uuid).success) return [];
    const blocks = (mib * BYTES_PER_MIB * fillPermille) / ONE_THOUSAND / FILL_BLOCK_BYTES;
    const lanes = Math.floor(blocks / lane_blocks);
    const memory = { kind: 'fill', lanes, lane_blocks, steps, readMs: READ_MS } as const;
    return [{ uuid, memory: lanes === 0 ? null : memory }];
  });
  return cards.length === 0 ? null : { product: { n, rounds }, cards };
}
