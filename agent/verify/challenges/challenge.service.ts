/** Commits to the work of one challenge at a time, and opens rows of the most recent challenges. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ChallengeRequest,
  type Commitment,
  type OpenedRow,
  type Opening,
  type OpenRequest,
  toWalk,
} from '#shared/api/agent/challenges.ts';
import { type MerkleTree, merkleTree, pathOf, rootOf } from '#shared/proof-of-work/merkle.ts';
import { nextSeed, type Purpose, seedOf } from '#shared/proof-of-work/seed.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { CardChallenges, CardProduct } from './card-challenges.ts';
import type { RunProof } from './proof-threads.ts';

/** Maximum of retained challenges; validators open rows soon after the commitment. */
const MAX_RETAINED = 2;
/** Deadline of an opening, which recomputes rows. */
const OPENING_MS = 60_000;

type Round = { seed: Uint8Array; tree: MerkleTree };
type Product = { n: number; rounds: readonly Round[] };
type Retained = { product: Product | null; cards: ReadonlyMap<string, CardProduct> };

export type ChallengeService = ReturnType<typeof createChallengeService>;

export type ChallengeServiceOptions = {
  clock: Clock;
  executorId: string;
  /** Number of threads that multiply matrices. */
  workers: number;
  /** Folder for the file of the disk challenge. */
  folder: string;
  /** True if a pod is on this host. Rented hosts are not challenged, so that challenges do not disturb pods. */
  isRented(): boolean;
  proof: RunProof;
  cards: CardChallenges;
};

export function createChallengeService(options: ChallengeServiceOptions) {
  const { clock, executorId, workers, isRented, proof, cards } = options;
  const path = join(options.folder, 'challenge.data');
  // Oldest first.
  const retained = new Map<string, Retained>();
  let isBusy = false;

  const removeLeftovers = () => rm(path, { force: true });

  const seedFor = ({ nonce }: ChallengeRequest, purpose: Purpose) =>
    seedOf({ nonce, executorId, device: purpose === 'product' ? 'cpu' : purpose, purpose });

  async function round(seed: Uint8Array, n: number, signal: AbortSignal): Promise<Round> {
    const share = Math.ceil(n / workers);
    const parts = Array.from({ length: Math.ceil(n / share) }, (_, part) =>
      proof.leaves(
        { kind: 'rows', seed, n, from: part * share, to: Math.min(n, (part + 1) * share) },
        signal,
      ),
    );
    return { seed, tree: merkleTree((await Promise.all(parts)).flat()) };
  }

  async function multiply(request: ChallengeRequest, signal: AbortSignal): Promise<Product | null> {
    if (request.product === null) return null;
    const { n, rounds: count } = request.product;
    const rounds: Round[] = [];
    let seed: Uint8Array = seedFor(request, 'product');
    for (let index = 0; index < count; index += 1) {
      const done = await round(seed, n, signal);
      rounds.push(done);
      seed = nextSeed(seed, rootOf(done.tree));
    }
    return { n, rounds };
  }

  async function walkOver(kind: 'memory' | 'disk', request: ChallengeRequest, signal: AbortSignal) {
    const parameters = request[kind];
    if (parameters === null) return null;
    const walk = toWalk(parameters);
    const seed = seedFor(request, kind);
    const task = kind === 'disk' ? { kind, seed, walk, path } : { kind, seed, walk };
    await removeLeftovers();
    try {
      const { digest, fillMs, walkMs, direct } = await proof.walk(task, signal);
      return { digest: hex(digest), fill_ms: fillMs, walk_ms: walkMs, direct };
    } finally {
      await removeLeftovers();
    }
  }

  function retain(id: string, done: Retained): void {
    retained.delete(id);
    retained.set(id, done);
    for (const oldest of retained.keys()) {
      if (retained.size <= MAX_RETAINED) break;
      retained.delete(oldest);
    }
  }

  const since = (beganMs: number) => clock.monotonicMs() - beganMs;

  function requireAllowed(request: ChallengeRequest): void {
    if (request.executor_id !== executorId) {
      throw new ApiError('bad_request', 'The challenge is for another executor');
    }
    if (isRented()) {
      throw new ApiError('conflict', 'A pod is on this host: it is not challenged while rented');
    }
  }

  /** Runs one challenge at a time, so that each has the whole host. */
  async function exclusively<T>(
    deadlineMs: number,
    stopping: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (isBusy) throw new ApiError('conflict', 'Another challenge is in progress');
    isBusy = true;
    const deadline = clock.deadline(deadlineMs);
    try {
      return await work(AbortSignal.any([deadline, stopping]));
    } catch (error) {
      if (!deadline.aborted) throw error;
      throw new ApiError('conflict', 'The work was not finished by its deadline', {
        hint: 'Request less work or a later deadline.',
      });
    } finally {
      isBusy = false;
    }
  }

  async function openedRows(
    { n, rounds }: Product,
    requested: OpenRequest['rows'],
    signal: AbortSignal,
  ) {
    const opened: OpenedRow[] = [];
    for (const [at, { seed, tree }] of rounds.entries()) {
      const indices = requested.filter(({ round }) => round === at).map(({ index }) => index);
      if (indices.length === 0) continue;
      const rows = await proof.rows({ kind: 'open', seed, n, indices }, signal);
      for (const [place, index] of indices.entries()) {
        const sums = Buffer.from(rows[place] ?? []).toString('base64');
        opened.push({ round: at, index, sums, path: pathOf(tree, index).map(hex) });
      }
    }
    return opened;
  }

  return {
    /** Throws 400 for another executor; 409 if rented, during other work on challenges, and after the deadline. */
    async commit(request: ChallengeRequest, stopping: AbortSignal): Promise<Commitment> {
      requireAllowed(request);
      return exclusively(request.deadline_ms, stopping, async (signal) => {
        const { challenge_id } = request;
        const onCards = await cards.commit(request, signal);
        const beganMs = clock.monotonicMs();
        const made = await multiply(request, signal);
        const product = made && { roots: made.rounds.map(rootIn), ms: since(beganMs) };
        retain(challenge_id, { product: made, cards: onCards.products });
        const memory = await walkOver('memory', request, signal);
        const disk = await walkOver('disk', request, signal);
        const host = { device: 'cpu', workers, product, memory, disk } as const;
        return { challenge_id, ...host, cards: onCards.cards };
      });
    },

    /**
     * Opens rows round by round. Throws 404 for an unknown challenge, 422 for a row that does not exist, 409 during
     * other work on challenges and after the deadline.
     */
    async open(id: string, { card, rows }: OpenRequest, stopping: AbortSignal): Promise<Opening> {
      const known = retained.get(id);
      const product = card === null ? known?.product : known?.cards.get(card);
      if (product === undefined || product === null) {
        throw new ApiError('not_found', 'There is no such challenge, or it is no longer retained', {
          hint: 'Make a new challenge.',
        });
      }
      for (const { round, index } of rows) {
        const made = 'seeds' in product ? product.seeds : product.rounds;
        if (round < made.length && index < product.n) continue;
        throw new ApiError('validation_error', `There is no row ${index} of round ${round}`);
      }
      return exclusively(OPENING_MS, stopping, async (signal) => ({
        rows:
          'rounds' in product
            ? await openedRows(product, rows, signal)
            : await cards.open(card ?? '', product, rows, { deadlineMs: OPENING_MS, signal }),
      }));
    },

    /** Deletes the file of an interrupted run. Call it while no challenge is running. */
    removeLeftovers,
  };
}

const rootIn = ({ tree }: Round): string => hex(rootOf(tree));

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
