/** Commits to the work of one challenge at a time, and opens rows and fills of the most recent challenges. */
import type {
  ChallengeRequest,
  Commitment,
  OpenedRow,
  Opening,
  OpenRequest,
} from '#shared/api/agent/challenges.ts';
import { type MerkleTree, merkleTree, pathOf, rootOf } from '#shared/proof-of-work/merkle.ts';
import { nextSeed, seedOf } from '#shared/proof-of-work/seed.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { challengeNotFound, type DeviceChallenges, requireRows } from './device-challenges.ts';
import type { RunProof } from './proof-threads.ts';

/** Maximum of retained challenges; validators open rows soon after the commitment. */
const MAX_RETAINED = 2;
/** Deadline of an opening, which recomputes rows or reads a fill. */
const OPENING_MS = 60_000;

type Round = { seed: Uint8Array; tree: MerkleTree };
type Product = { n: number; rounds: readonly Round[] };

export type ChallengeService = ReturnType<typeof createChallengeService>;

export type ChallengeServiceOptions = {
  clock: Clock;
  executorId: string;
  /** Number of threads that multiply matrices. */
  workers: number;
  /** True if a pod is on this host. Rented hosts are not challenged, so that challenges do not disturb pods. */
  isRented(): boolean;
  proof: RunProof;
  devices: DeviceChallenges;
};

export function createChallengeService(options: ChallengeServiceOptions) {
  const { clock, executorId, workers, isRented, proof, devices } = options;
  // Products of the processor, oldest first.
  const retained = new Map<string, Product>();
  let isBusy = false;

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
    const { nonce } = request;
    let seed: Uint8Array = seedOf({ nonce, executorId, device: 'cpu', purpose: 'product' });
    for (let index = 0; index < count; index += 1) {
      const done = await round(seed, n, signal);
      rounds.push(done);
      seed = nextSeed(seed, rootOf(done.tree));
    }
    return { n, rounds };
  }

  function retain(id: string, done: Product): void {
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
        const begun = await devices.begin(request, signal);
        try {
          const cards = (await begun?.cards()) ?? null;
          const beganMs = clock.monotonicMs();
          const made = await multiply(request, signal);
          const product = made && { roots: made.rounds.map(rootIn), ms: since(beganMs) };
          if (made !== null) retain(challenge_id, made);
          const memory = (await begun?.host('memory')) ?? null;
          const disk = (await begun?.host('disk')) ?? null;
          return { challenge_id, device: 'cpu', workers, product, memory, disk, cards } as const;
        } catch (error) {
          await begun?.end();
          throw error;
        }
      });
    },

    /**
     * Opens rows round by round, or reads a fill. Throws 404 for an unknown challenge, 422 for a row or leaf that does not
     * exist, 409 during other work on challenges and after the deadline.
     */
    async open(id: string, request: OpenRequest, stopping: AbortSignal): Promise<Opening> {
      const { card, rows, fill } = request;
      return exclusively(OPENING_MS, stopping, async (signal) => {
        if (fill !== null) return { rows: [], fill: await devices.read(id, fill, signal) };
        if (card !== null) return { rows: await devices.rows(id, card, rows, signal), fill };
        const product = retained.get(id);
        if (product === undefined) throw challengeNotFound();
        requireRows(rows, { n: product.n, rounds: product.rounds.length });
        return { rows: await openedRows(product, rows, signal), fill };
      });
    },
  };
}

const rootIn = ({ tree }: Round): string => hex(rootOf(tree));

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
