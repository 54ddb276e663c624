/**
 * Proof of work between validator and agent: POST /v1/challenges returns commitments to results; then POST
 * /v1/challenges/{id}/open returns requested rows of products, and reads filled memory and disks.
 */
import { z } from 'zod';
import {
  FILL_BLOCK_BYTES,
  FILL_LEAF_BYTES,
  type FillLayout,
  LANE_STEP,
} from '../../proof-of-work/fill.ts';
import { MAX_SIZE, SIZE_STEP } from '../../proof-of-work/product.ts';
import { Amount, Name, Text } from './bounds.ts';

/** Size of the largest matrix that a CPU multiplies within minutes. */
const MAX_CPU_SIZE = 4_096;
const MIN_SIZE = 64;
const MAX_ROUNDS = 256;
const GIB = 1024 ** 3;
/** Most steps of one walk. */
const MAX_STEPS = 16_384;
const MAX_LANES = 65_536;
const MAX_WORKERS = 1_024;
/** Most cards of a host, not counting MIG devices. */
export const MAX_CARDS = 64;
/** Largest memory of a card, bytes. */
const MAX_CARD_BYTES = 1024 * GIB;
/** Most rows that one request may open, over all rounds. */
export const MAX_OPENED_ROWS = 32;
/** Most leaves of a fill that one request may open. */
export const MAX_OPENED_LEAVES = 256;

const Milliseconds = z.number().nonnegative().max(600_000);
const Nonce = z.string().regex(/^[A-Za-z0-9_-]{22}$/, '16 bytes in base64url');
const Hash = z.string().regex(/^[0-9a-f]{64}$/, '32 bytes in hex');

const AnyFill = z.object({
  /** Agents that do not know this kind of work reject the challenge. */
  kind: z.literal('fill'),
  lanes: z.int().min(1).max(MAX_LANES),
  lane_blocks: z
    .int()
    .min(LANE_STEP)
    .max(MAX_CARD_BYTES / FILL_BLOCK_BYTES)
    .multipleOf(LANE_STEP),
});
export type FillRequest = z.output<typeof AnyFill>;
export const filledBytes = ({ lanes, lane_blocks }: Pick<FillRequest, 'lanes' | 'lane_blocks'>) =>
  lanes * lane_blocks * FILL_BLOCK_BYTES;
const HostFill = AnyFill.refine((fill) => filledBytes(fill) <= GIB, 'More than 1 GiB');
const CardFill = AnyFill.refine(
  (fill) => filledBytes(fill) <= MAX_CARD_BYTES,
  'More than a card has',
);

/** UUID of a whole card as nvidia-smi prints it; MIG devices have other UUIDs. */
export const CardUuid = z.string().regex(/^GPU-[0-9a-f-]{1,64}$/, 'Not a UUID of a whole card');

const productUpTo = (size: number) =>
  z.object({
    n: z.int().min(MIN_SIZE).max(size).multipleOf(SIZE_STEP),
    rounds: z.int().min(1).max(MAX_ROUNDS),
  });

export const ChallengeRequest = z.object({
  challenge_id: z.uuid(),
  nonce: Nonce,
  /** The agent's id; the agent rejects challenges for another id. */
  executor_id: Name,
  /** Time limit for the commitment, milliseconds; longer work is cancelled. */
  deadline_ms: z.int().min(1_000).max(600_000),
  /** Rounds of C = A·B; the Merkle root of each determines the seed of the next. */
  product: productUpTo(MAX_CPU_SIZE).nullable(),
  memory: HostFill.nullable(),
  disk: HostFill.nullable(),
  /** The product to compute on each of these cards at the same time, while their memory is filled. */
  gpu: z
    .object({
      product: productUpTo(MAX_SIZE),
      cards: z
        .array(z.object({ uuid: CardUuid, memory: CardFill.nullable() }))
        .min(1)
        .max(MAX_CARDS),
    })
    .nullable()
    .default(null),
});
export type ChallengeRequest = z.output<typeof ChallengeRequest>;

export const toLayout = ({ lanes, lane_blocks: laneBlocks }: FillRequest): FillLayout => ({
  lanes,
  laneBlocks,
});

/** Commitment to a fill: root of the hash tree over its leaves. */
export const Filled = z.object({ root: Hash, fill_ms: Milliseconds });
export type Filled = z.output<typeof Filled>;
export const Product = z.object({ roots: z.array(Hash).max(MAX_ROUNDS), ms: Milliseconds });

/** Why a card has no proof. */
export const CARD_FAULTS = [
  'FABRIC_NOT_READY',
  'DEVICE_ABSENT',
  'VRAM_UNAVAILABLE',
  'UUID_MISMATCH',
  'GPU_PROOF_FAILED',
] as const;

export const CardCommitment = z.object({
  uuid: CardUuid,
  fault: z.object({ code: z.enum(CARD_FAULTS), detail: Text }).nullable(),
  /** Null if the card has a fault. */
  product: Product.nullable(),
  memory: Filled.nullable(),
});
export type CardCommitment = z.output<typeof CardCommitment>;

export const Commitment = z.object({
  challenge_id: z.uuid(),
  /** Device of product, memory and disk; `cards` has the products of GPUs. */
  device: z.literal('cpu'),
  workers: z.int().min(1).max(MAX_WORKERS),
  product: Product.nullable(),
  /** Null if it was not requested, or the agent has no program for fills. */
  memory: Filled.nullable(),
  disk: Filled.nullable(),
  /** Null if no card was requested, or the agent cannot run proofs on cards. */
  cards: z.array(CardCommitment).max(MAX_CARDS).nullable().default(null),
});
export type Commitment = z.output<typeof Commitment>;

/** Device with a fill. */
const FilledDevice = z.enum(['memory', 'disk']).or(CardUuid);
export type FilledDevice = z.output<typeof FilledDevice>;

export const OpenRequest = z
  .object({
    /** The card whose product is opened; null for the CPU's product. */
    card: CardUuid.nullable().default(null),
    rows: z
      .array(z.object({ round: Amount, index: Amount }))
      .max(MAX_OPENED_ROWS)
      .default([]),
    /** Walks over a fill or opens its leaves. The memory is freed after leaves were opened. */
    fill: z
      .object({
        device: FilledDevice,
        walk: z.object({ nonce: Hash, steps: z.int().min(1).max(MAX_STEPS) }).nullable(),
        leaves: z.array(Amount).max(MAX_OPENED_LEAVES),
      })
      .nullable()
      .default(null),
  })
  .refine(({ rows, fill }) => rows.length > 0 !== (fill !== null), 'Either rows or a fill');
export type OpenRequest = z.output<typeof OpenRequest>;
export type FillReading = NonNullable<OpenRequest['fill']>;

const MAX_ROW_CHARS = (MAX_SIZE * Int32Array.BYTES_PER_ELEMENT * 4) / 3 + 4;
/** Height of the Merkle tree over the largest number of rows. */
const MAX_PATH = 14;

export const OpenedRow = z.object({
  round: Amount,
  index: Amount,
  /** 32-bit little-endian integers, base64. */
  sums: z.base64().max(MAX_ROW_CHARS),
  path: z.array(Hash).max(MAX_PATH),
});
export type OpenedRow = z.output<typeof OpenedRow>;

const LEAF_CHARS = Math.ceil(FILL_LEAF_BYTES / 3) * 4;
/** Height of the hash tree over the largest memory of a card. */
const MAX_LEAF_PATH = Math.log2(MAX_CARD_BYTES / FILL_LEAF_BYTES);

export const OpenedLeaf = z.object({
  index: Amount,
  bytes: z.base64().length(LEAF_CHARS),
  path: z.array(Hash).max(MAX_LEAF_PATH),
});
export type OpenedLeaf = z.output<typeof OpenedLeaf>;

export const ReadFill = z.object({
  /** State after each step of the walk; empty if none was requested. */
  states: z.array(Hash).max(MAX_STEPS),
  leaves: z.array(OpenedLeaf).max(MAX_OPENED_LEAVES),
});
export type ReadFill = z.output<typeof ReadFill>;

export const Opening = z.object({
  rows: z.array(OpenedRow).max(MAX_OPENED_ROWS),
  /** Null if no fill was requested. */
  fill: ReadFill.nullable().default(null),
});
export type Opening = z.output<typeof Opening>;
