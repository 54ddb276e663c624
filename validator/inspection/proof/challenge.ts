/** One challenge to one host: sent, timed by our own clock, and what its failing means. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import {
  type AskedWalk,
  type ChallengeRequest,
  type Commitment,
  walkOf,
} from '#shared/api/agent/challenges.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Verifier } from './verifier.ts';

export type ChallengeDeps = {
  client: Pick<AgentClient, 'challenge' | 'openChallenge'>;
  clock: Clock;
  random: Random;
  verifier: Pick<Verifier, 'rows' | 'walk'>;
};

const NONCE_BYTES = 16;
const UNREACHABLE = 'upstream_unavailable';

export type ChallengeFailure =
  | { status: 'failed'; fault: 'POW_TIMEOUT' | 'POW_REFUSED'; detail: string }
  /** Nobody answered: that says nothing about the work. */
  | { status: 'not_measured'; detail: string };

/** `wallMs` is from our asking to our having the commitment: what the host says of itself is not gone by. */
export type Committing = { request: ChallengeRequest; commitment: Commitment; wallMs: number };

/**
 * Sends a challenge that nobody could know before, then has `check` look at what came back. Rejects only for what is
 * our own fault.
 */
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
    if (error.code === UNREACHABLE) return { status: 'not_measured', detail };
    const isLate = !isCommitted && clock.monotonicMs() - beganMs >= plan.deadline_ms;
    return { status: 'failed', fault: isLate ? 'POW_TIMEOUT' : 'POW_REFUSED', detail };
  }
}

/** Whether a walk ended where it had to. */
export async function walkedRight(
  { verifier }: Pick<ChallengeDeps, 'verifier'>,
  { seed, asked, digest }: { seed: Uint8Array; asked: AskedWalk; digest: string | undefined },
): Promise<boolean> {
  return digest !== undefined && (await verifier.walk({ seed, walk: walkOf(asked) })) === digest;
}
