/**
 * Proof of work between validator and agent: POST /v1/challenges returns commitments to results; then POST
 * /v1/challenges/{id}/open returns the requested rows.
 */
import { z } from 'zod';
import { KEYSTREAM_BLOCK } from '../../proof-of-work/keystream.ts';
import { MAX_SIZE, SIZE_STEP } from '../../proof-of-work/product.ts';
import type { Walk } from '../../proof-of-work/walk.ts';
import { Amount, Name, Text } from './bounds.ts';

/** Size of the largest matrix that a CPU multiplies within minutes. */
const MAX_CPU_SIZE = 4_096;
const MIN_SIZE = 64;
const MAX_ROUNDS = 16;
const GIB = 1024 ** 3;
const MAX_STEPS = 1_000_000;
const MAX_DISK_READS = 100_000;
const MAX_DISK_BLOCK = 1024 * 1024;
const MAX_WORKERS = 1_024;
/** Most cards of a host, not counting MIG devices. */
export const MAX_CARDS = 64;
/** Largest memory of a card, bytes. */
const MAX_CARD_BYTES = 1024 * GIB;
/** Most rows that one request may open, over all rounds. */
export const MAX_OPENED_ROWS = 32;

const Milliseconds = z.number().nonnegative().max(600_000);
const Nonce = z.string().regex(/^[A-Za-z0-9_-]{22}$/, '16 bytes in base64url');
const Hash = z.string().regex(/^[0-9a-f]{64}$/, '32 bytes in hex');

const AnyWalk = z.object({
  block_bytes: z.int().min(KEYSTREAM_BLOCK).max(MAX_DISK_BLOCK).multipleOf(KEYSTREAM_BLOCK),
  blocks: z.int().min(1),
  steps: z.int().min(1).max(MAX_STEPS),
});
export type WalkRequest = z.output<typeof AnyWalk>;
const bytesOf = ({ block_bytes, blocks }: WalkRequest) => block_bytes * blocks;
const HostWalk = AnyWalk.refine((walk) => bytesOf(walk) <= GIB, 'More than 1 GiB');
const CardWalk = AnyWalk.refine((walk) => bytesOf(walk) <= MAX_CARD_BYTES, 'More than a card has');

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
  memory: HostWalk.nullable(),
  disk: HostWalk.refine(({ steps }) => steps <= MAX_DISK_READS, 'Too many reads').nullable(),
  /** The product to compute on each of these cards at the same time, while their memory is filled. */
  gpu: z
    .object({
      product: productUpTo(MAX_SIZE),
      cards: z
        .array(z.object({ uuid: CardUuid, memory: CardWalk.nullable() }))
        .min(1)
        .max(MAX_CARDS),
    })
    .nullable()
    .default(null),
});
export type ChallengeRequest = z.output<typeof ChallengeRequest>;

export const toWalk = ({ block_bytes: blockBytes, blocks, steps }: WalkRequest): Walk => ({
  blockBytes,
  blocks,
  steps,
});

export const Walked = z.object({ digest: Hash, fill_ms: Milliseconds, walk_ms: Milliseconds });
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
  memory: Walked.nullable(),
});
export type CardCommitment = z.output<typeof CardCommitment>;

export const Commitment = z.object({
  challenge_id: z.uuid(),
  /** Device of product, memory and disk; `cards` has the products of GPUs. */
  device: z.literal('cpu'),
  workers: z.int().min(1).max(MAX_WORKERS),
  product: Product.nullable(),
  memory: Walked.nullable(),
  disk: Walked.extend({
    /** The reads bypassed the page cache. */
    direct: z.boolean().default(false),
  }).nullable(),
  /** Null if no card was requested, or the agent cannot run proofs on cards. */
  cards: z.array(CardCommitment).max(MAX_CARDS).nullable().default(null),
});
export type Commitment = z.output<typeof Commitment>;

export const OpenRequest = z.object({
  /** The card whose product is opened; null for the CPU's product. */
  card: CardUuid.nullable().default(null),
  rows: z
    .array(z.object({ round: Amount, index: Amount }))
    .min(1)
    .max(MAX_OPENED_ROWS),
});
export type OpenRequest = z.output<typeof OpenRequest>;

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

export const Opening = z.object({ rows: z.array(OpenedRow).max(MAX_OPENED_ROWS) });
export type Opening = z.output<typeof Opening>;
