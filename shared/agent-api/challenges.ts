/**
 * Proof of work between validator and agent: POST /v1/challenges commits to results, POST /v1/challenges/{id}/open
 * then shows the rows that are asked for (validator reference 6).
 */
import { z } from 'zod';
import { KEYSTREAM_BLOCK } from '../proof-of-work/keystream.ts';
import { SIZE_STEP } from '../proof-of-work/product.ts';
import { Amount, Name } from './bounds.ts';

/** What a processor multiplies within minutes. */
const MAX_CPU_SIZE = 4_096;
const MIN_SIZE = 64;
const MAX_ROUNDS = 16;
const GIB = 1024 ** 3;
const MAX_STEPS = 1_000_000;
const MAX_DISK_READS = 100_000;
const MAX_DISK_BLOCK = 1024 * 1024;
const MAX_WORKERS = 1_024;
/** In one opening, of all rounds together. */
export const MAX_OPENED_ROWS = 32;

const Milliseconds = z.number().nonnegative().max(600_000);
const Nonce = z.string().regex(/^[A-Za-z0-9_-]{22}$/, '16 bytes in base64url');
const Hash = z.string().regex(/^[0-9a-f]{64}$/, '32 bytes in hex');

const Walk = z
  .object({
    block_bytes: z.int().min(KEYSTREAM_BLOCK).max(MAX_DISK_BLOCK).multipleOf(KEYSTREAM_BLOCK),
    blocks: z.int().min(1),
    steps: z.int().min(1).max(MAX_STEPS),
  })
  .refine(({ block_bytes, blocks }) => block_bytes * blocks <= GIB, 'More than 1 GiB');

export const ChallengeRequest = z.object({
  challenge_id: z.uuid(),
  nonce: Nonce,
  /** The agent's own: a challenge for another host is refused. */
  executor_id: Name,
  /** In which the commitment is made; what takes longer is given up. */
  deadline_ms: z.int().min(1_000).max(600_000),
  /** Rounds of C = A·B, each begun from the root of the one before. */
  product: z
    .object({
      n: z.int().min(MIN_SIZE).max(MAX_CPU_SIZE).multipleOf(SIZE_STEP),
      rounds: z.int().min(1).max(MAX_ROUNDS),
    })
    .nullable(),
  memory: Walk.nullable(),
  disk: Walk.refine(({ steps }) => steps <= MAX_DISK_READS, 'More reads than are taken').nullable(),
});
export type ChallengeRequest = z.output<typeof ChallengeRequest>;

const Walked = z.object({ digest: Hash, fill_ms: Milliseconds, walk_ms: Milliseconds });

export const Commitment = z.object({
  challenge_id: z.uuid(),
  /** What did the work: no GPU was asked of it yet. */
  device: z.literal('cpu'),
  workers: z.int().min(1).max(MAX_WORKERS),
  product: z.object({ roots: z.array(Hash).max(MAX_ROUNDS), ms: Milliseconds }).nullable(),
  memory: Walked.nullable(),
  disk: Walked.nullable(),
});
export type Commitment = z.output<typeof Commitment>;

export const OpenRequest = z.object({
  rows: z
    .array(z.object({ round: Amount, index: Amount }))
    .min(1)
    .max(MAX_OPENED_ROWS),
});
export type OpenRequest = z.output<typeof OpenRequest>;

const MAX_ROW_CHARS = (MAX_CPU_SIZE * Int32Array.BYTES_PER_ELEMENT * 4) / 3 + 4;
/** A tree over the most rows is as high. */
const MAX_PATH = 12;

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
