/** Has one host prove its work: a challenge, its commitment, and then the rows that nobody could know of before. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import {
  type ChallengeRequest,
  type Commitment,
  MAX_OPENED_ROWS,
} from '#shared/agent-api/challenges.ts';
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import { nextSeed, type Purpose, seedOf } from '#shared/proof-of-work/seed.ts';
import { filledBlocks, walk } from '#shared/proof-of-work/walk.ts';
import type { Random } from '#shared/random.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { sha256Hex } from '#shared/signing/canonical-request.ts';
import { faultInRows, type RowFault } from './verify-rows.ts';

/** What is asked of a host; null parts are left out. */
export type ProofPlan = Pick<ChallengeRequest, 'deadline_ms' | 'product' | 'memory' | 'disk'>;

export type ProofPart = 'product' | 'memory' | 'disk';

export type ProofFault = 'POW_TIMEOUT' | 'POW_MISMATCH' | 'POW_REFUSED';

export type Proof =
  /** `wallMs` is from our asking to our having the commitment: what the host says of itself is not gone by. */
  | { status: 'proven'; wallMs: number; commitment: Commitment; openingsHash: string | null }
  | {
      status: 'failed';
      fault: ProofFault;
      /** Where the mismatch is; null for what is no mismatch. */
      part: ProofPart | null;
      detail: string;
      commitment: Commitment | null;
    }
  /** Nobody answered: that says nothing about the work. */
  | { status: 'not_measured'; detail: string };

export type ProofDeps = {
  client: Pick<AgentClient, 'challenge' | 'openChallenge'>;
  clock: Clock;
  random: Random;
};

const NONCE_BYTES = 16;
/** Half-done work escapes one time in 2^16. */
const ROWS = 16;
const UNREACHABLE = 'upstream_unavailable';

/** Rejects only for what is our own fault. */
export async function prove(deps: ProofDeps, executorId: string, plan: ProofPlan): Promise<Proof> {
  const { client, clock, random } = deps;
  const nonce = Buffer.from(random.bytes(NONCE_BYTES)).toString('base64url');
  const request = { challenge_id: random.uuid(), nonce, executor_id: executorId, ...plan };
  const beganMs = clock.monotonicMs();
  let commitment: Commitment | null = null;
  try {
    commitment = await client.challenge(request);
    const wallMs = clock.monotonicMs() - beganMs;
    const { detail: inProduct, openingsHash } = await checkProduct(deps, request, commitment);
    const faults = {
      product: inProduct,
      memory: await faultInWalk('memory', request, commitment),
      disk: await faultInWalk('disk', request, commitment),
    };
    for (const part of ['product', 'memory', 'disk'] as const) {
      const detail = faults[part];
      if (detail === null) continue;
      return { status: 'failed', fault: 'POW_MISMATCH', part, detail, commitment };
    }
    return { status: 'proven', wallMs, commitment, openingsHash };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const detail = error.message;
    if (error.code === UNREACHABLE) return { status: 'not_measured', detail };
    const isLate = commitment === null && clock.monotonicMs() - beganMs >= plan.deadline_ms;
    const fault = isLate ? 'POW_TIMEOUT' : 'POW_REFUSED';
    return { status: 'failed', fault, part: null, detail, commitment };
  }
}

type ProductCheck = { detail: string | null; openingsHash: string | null };

/** What is wrong with the product, and the hash of what was opened of it. */
async function checkProduct(
  { client, random }: ProofDeps,
  request: ChallengeRequest,
  { product: committed }: Commitment,
): Promise<ProductCheck> {
  const { product: asked, challenge_id: id } = request;
  if (asked === null) return { detail: null, openingsHash: null };
  if (committed?.roots.length !== asked.rounds) {
    return { detail: 'The product has not the rounds asked for', openingsHash: null };
  }
  const roots = committed.roots.map((root) => Buffer.from(root, 'hex'));
  const chosen = chooseRows(asked, random);
  const opening = await client.openChallenge(id, {
    rows: chosen.flatMap(({ round, indices }) => indices.map((index) => ({ round, index }))),
  });
  const openingsHash = sha256Hex(canonicalJson(opening));
  const seeds = seedsOf(seedFor(request, 'product'), roots);
  for (const { round, indices } of chosen) {
    const [seed, root] = [seeds[round], roots[round]];
    if (seed === undefined || root === undefined) throw new RangeError(`no round ${round}`);
    const opened = opening.rows.filter((row) => row.round === round);
    const fault = faultInRows({ seed, n: asked.n, root }, indices, opened, random);
    if (fault !== null) return { detail: `Round ${round}: ${ROW_FAULTS[fault]}`, openingsHash };
  }
  return { detail: null, openingsHash };
}

/** Of each round: every root but the last begins another. */
function seedsOf(first: Buffer, roots: readonly Buffer[]): Buffer[] {
  const seeds: Buffer[] = [];
  let seed = first;
  for (const root of roots) {
    seeds.push(seed);
    seed = nextSeed(seed, root);
  }
  return seeds;
}

const ROW_FAULTS: Record<RowFault, string> = {
  malformed: 'the rows opened are not those asked for',
  not_committed: 'a row opened is not the one committed to',
  wrong: 'a row is not that of the product',
};

/** Rows of the last round, and where there is room one of each before: a round that was skipped has none. */
function chooseRows({ n, rounds }: { n: number; rounds: number }, random: Random) {
  const last = Math.min(ROWS, n, MAX_OPENED_ROWS - rounds + 1);
  return Array.from({ length: rounds }, (_, round) => ({
    round,
    indices: distinct(round === rounds - 1 ? last : 1, n, random),
  }));
}

function distinct(count: number, below: number, random: Random): number[] {
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(random.int(below));
  return [...chosen];
}

async function faultInWalk(
  kind: 'memory' | 'disk',
  request: ChallengeRequest,
  commitment: Commitment,
): Promise<string | null> {
  const asked = request[kind];
  if (asked === null) return null;
  const seed = seedFor(request, kind);
  const { block_bytes: blockBytes, blocks, steps } = asked;
  const digest = await walk(seed, { blockBytes, blocks, steps }, (index) =>
    filledBlocks(seed, { blockBytes }, { from: index, count: 1 }),
  );
  if (commitment[kind]?.digest === digest.toString('hex')) return null;
  return `The walk over ${kind} ended elsewhere`;
}

function seedFor({ nonce, executor_id: executorId }: ChallengeRequest, purpose: Purpose): Buffer {
  return seedOf({ nonce, executorId, device: purpose === 'product' ? 'cpu' : purpose, purpose });
}
