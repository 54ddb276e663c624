/** Has the processor, memory and disk of one host prove their work: a challenge, its commitment, then rows and walks. */
import type { ChallengeRequest, Commitment } from '#shared/api/agent/challenges.ts';
import { type Purpose, seedOf } from '#shared/proof-of-work/seed.ts';
import {
  type ChallengeDeps,
  type ChallengeFailure,
  type Committing,
  challenge,
  walkedRight,
} from './challenge.ts';
import { checkProduct } from './product-check.ts';

/** What is asked of a host; null parts are left out. */
export type ProofPlan = Pick<ChallengeRequest, 'deadline_ms' | 'product' | 'memory' | 'disk'>;

export type ProofPart = 'product' | 'memory' | 'disk';

export type Proof =
  | { status: 'proven'; wallMs: number; commitment: Commitment; openingsHash: string | null }
  | { status: 'failed'; fault: 'POW_MISMATCH'; part: ProofPart; detail: string }
  | ChallengeFailure;

/** Rejects only for what is our own fault. */
export function prove(deps: ChallengeDeps, executorId: string, plan: ProofPlan): Promise<Proof> {
  const asked = { ...plan, executor_id: executorId, gpu: null };
  return challenge(deps, asked, (committing) => check(deps, committing));
}

async function check(deps: ChallengeDeps, committing: Committing): Promise<Proof> {
  const { request, commitment, wallMs } = committing;
  const product = await productIn(deps, committing);
  if (product.detail !== null) return mismatch('product', product.detail);
  for (const part of ['memory', 'disk'] as const) {
    const asked = request[part];
    const walk = { seed: seedFor(request, part), digest: commitment[part]?.digest };
    if (asked !== null && !(await walkedRight(deps, { ...walk, asked }))) {
      return mismatch(part, `The walk over ${part} ended elsewhere`);
    }
  }
  return { status: 'proven', wallMs, commitment, openingsHash: product.openingsHash };
}

function mismatch(part: ProofPart, detail: string): Proof {
  return { status: 'failed', fault: 'POW_MISMATCH', part, detail };
}

async function productIn(deps: ChallengeDeps, { request, commitment }: Committing) {
  const { product: asked, challenge_id: challengeId } = request;
  if (asked === null) return { detail: null, openingsHash: null };
  return checkProduct(deps, {
    ...{ challengeId, card: null, seed: seedFor(request, 'product'), ...asked },
    roots: commitment.product?.roots ?? [],
  });
}

function seedFor({ nonce, executor_id: executorId }: ChallengeRequest, purpose: Purpose): Buffer {
  return seedOf({ nonce, executorId, device: purpose === 'product' ? 'cpu' : purpose, purpose });
}
