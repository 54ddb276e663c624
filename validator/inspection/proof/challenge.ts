/** Sends one proof-of-work challenge to a host, times it by the validator's clock and verifies rows of products. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import {
  type ChallengeRequest,
  type Commitment,
  MAX_OPENED_ROWS,
} from '#shared/api/agent/challenges.ts';
import { roundSeeds } from '#shared/proof-of-work/seed.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, isUnavailable } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Expected } from '../../checks/proof-baseline.service.ts';
import type { Verifier } from './verifier.ts';
import type { RowFault } from './verify.tasks.ts';

export type ChallengeDeps = {
  client: Pick<AgentClient, 'challenge' | 'openChallenge'>;
  clock: Clock;
  random: Random;
  verifier: Pick<Verifier, 'rows' | 'fill'>;
};

const NONCE_BYTES = 16;
const INVALID = 'validation_error';

export type ChallengeFailure =
  | { status: 'failed'; fault: 'POW_TIMEOUT' | 'POW_REFUSED'; detail: string }
  /** The agent does not know this kind of challenge. */
  | { status: 'unsupported'; detail: string }
  /** The agent did not answer, which proves nothing about its work. */
  | { status: 'not_measured'; detail: string };

/** `wallMs` is measured by the validator, from sending the challenge to receiving the commitment. */
export type Committing = { request: ChallengeRequest; commitment: Commitment; wallMs: number };

/** Sends an unpredictable challenge and verifies the commitment with `check`. Rejects only for errors of the validator. */
export async function challenge<T>(
  { client, clock, random }: ChallengeDeps,
  plan: Omit<ChallengeRequest, 'challenge_id' | 'nonce'>,
  check: (committing: Committing) => Promise<T>,
): Promise<T | ChallengeFailure> {
  const nonce = Buffer.from(random.bytes(NONCE_BYTES)).toString('base64url');
  const request = { challenge_id: random.uuid(), nonce, ...plan };
  const beganMs = clock.monotonicMs();
  let isCommitted = false;
  try {
    const commitment = await client.challenge(request);
    isCommitted = true;
    return await check({ request, commitment, wallMs: clock.monotonicMs() - beganMs });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const detail = error.message;
    if (isUnavailable(error.code)) return { status: 'not_measured', detail };
    if (error.code === INVALID && !isCommitted) return { status: 'unsupported', detail };
    const isLate = !isCommitted && clock.monotonicMs() - beganMs >= plan.deadline_ms;
    return { status: 'failed', fault: isLate ? 'POW_TIMEOUT' : 'POW_REFUSED', detail };
  }
}

/**
 * Number of verified rows, all of one random round, because verifying a round costs more than all of its rows. A prover
 * that skips half of the rows of each round stays undetected once in 2^16, one that skips half of the rounds every
 * second time.
 */
const ROWS = 16;

export type ProductCheckDeps = {
  client: Pick<AgentClient, 'openChallenge'>;
  random: Random;
  verifier: Pick<Verifier, 'rows'>;
};

export type CommittedProduct = {
  challengeId: string;
  /** UUID of the card that computed it; null for the processor. */
  card: string | null;
  seed: Uint8Array;
  n: number;
  rounds: number;
  /** Committed Merkle roots, hex. */
  roots: readonly string[];
};

export type ProductCheck = { detail: string | null; openingsHash: string | null };

/** Opens random rows after the commitment and verifies them. `detail` is the fault or null; `openingsHash` covers the opened rows. */
export async function checkProduct(
  { client, random, verifier }: ProductCheckDeps,
  { challengeId, card, seed, n, rounds, roots: committedRoots }: CommittedProduct,
): Promise<ProductCheck> {
  if (committedRoots.length !== rounds) {
    return { detail: 'The product does not have the requested rounds', openingsHash: null };
  }
  const roots = committedRoots.map((root) => Buffer.from(root, 'hex'));
  const round = random.int(rounds);
  const asked = distinct(Math.min(ROWS, n, MAX_OPENED_ROWS), n, random);
  const opening = await client.openChallenge(challengeId, {
    card,
    fill: null,
    rows: asked.map((index) => ({ round, index })),
  });
  const openingsHash = sha256Hex(canonicalJson(opening));
  const [roundSeed, root] = [roundSeeds(seed, roots)[round], roots[round]];
  if (roundSeed === undefined || root === undefined) throw new RangeError(`no round ${round}`);
  const committed = { seed: roundSeed, n, root };
  const opened = opening.rows.filter((row) => row.round === round);
  const fault = await verifier.rows({ committed, asked, opened });
  const detail = fault === null ? null : `Round ${round}: ${ROW_FAULTS[fault]}`;
  return { detail, openingsHash };
}

const ROW_FAULTS: Record<RowFault, string> = {
  malformed: 'the opened rows are not the requested rows',
  not_committed: 'an opened row does not match the commitment',
  wrong: 'a row is not part of the product',
};

/** Distinct random numbers below a bound. */
export function distinct(count: number, below: number, random: Random): number[] {
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(random.int(below));
  return [...chosen];
}

const FIRST_DEADLINE_MS = 300_000;
const SHORTEST_DEADLINE_MS = 10_000;
/**
 * Factor of the deadline. It exceeds the slowest accepted time, so that a late proof is judged as slow instead of lost.
 */
const DEADLINE_FACTOR = 4;
/** Maximum part of a round trip that is deducted. */
const MAX_ROUND_TRIP_MS = 2_000;

/** Deadline for answering a challenge, in whole milliseconds. */
export function deadlineFor({ modelMs, ownMs }: Omit<Expected, 'others'>): number {
  if (modelMs === null && ownMs === null) return FIRST_DEADLINE_MS;
  const usual = Math.max(modelMs ?? 0, ownMs ?? 0);
  const deadline = Math.max(SHORTEST_DEADLINE_MS, Math.ceil(usual * DEADLINE_FACTOR));
  return Math.min(FIRST_DEADLINE_MS, deadline);
}

/** Duration of a proof without the network round trip. */
export function msWithoutRoundTrip(wallMs: number, roundTripMs: number): number {
  return Math.max(0, wallMs - Math.min(roundTripMs, MAX_ROUND_TRIP_MS));
}
