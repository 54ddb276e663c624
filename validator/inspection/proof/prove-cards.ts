/** Has all cards of one host prove their work at once, each for itself. */
import type { CardCommitment, ChallengeRequest } from '#shared/api/agent/challenges.ts';
import { seedOf } from '#shared/proof-of-work/seed.ts';
import type { CardProof } from '../../checks/measured.ts';
import {
  type ChallengeDeps,
  type ChallengeFailure,
  type Committing,
  challenge,
  walkedRight,
} from './challenge.ts';
import { checkProduct } from './product-check.ts';

export type CardsPlan = NonNullable<ChallengeRequest['gpu']>;

export type CardsProof =
  | { status: 'answered'; wallMs: number; cards: CardProof[] }
  /** The agent has no way to have a card prove anything. */
  | { status: 'missing' }
  | ChallengeFailure;

/** Rejects only for what is our own fault. */
export function proveCards(
  deps: ChallengeDeps,
  executorId: string,
  { gpu, deadlineMs }: { gpu: CardsPlan; deadlineMs: number },
): Promise<CardsProof> {
  const nothing = { product: null, memory: null, disk: null };
  const plan = { ...nothing, executor_id: executorId, deadline_ms: deadlineMs, gpu };
  return challenge<CardsProof>(deps, plan, async (committing) => {
    const { commitment, wallMs } = committing;
    if (commitment.cards === null) return { status: 'missing' };
    const cards: CardProof[] = [];
    for (const asked of gpu.cards) cards.push(await checkCard(deps, committing, gpu, asked));
    return { status: 'answered', wallMs, cards };
  });
}

async function checkCard(
  deps: ChallengeDeps,
  { request, commitment }: Committing,
  { product }: CardsPlan,
  { uuid, memory }: CardsPlan['cards'][number],
): Promise<CardProof> {
  const said = commitment.cards?.find((card) => card.uuid === uuid);
  const roots = said?.product?.roots ?? [];
  const proof = { uuid, roots, openings_hash: null };
  if (said === undefined) {
    return { ...proof, reason: 'DEVICE_ABSENT', detail: 'Nothing was said of this card' };
  }
  if (said.fault !== null) return { ...proof, reason: said.fault.code, detail: said.fault.detail };
  const { nonce, executor_id: executorId, challenge_id: challengeId } = request;
  const seedFor = (purpose: 'product' | 'memory') =>
    seedOf({ nonce, executorId, device: uuid, purpose });
  const committed = { challengeId, card: uuid, seed: seedFor('product'), ...product, roots };
  const { detail, openingsHash } = await checkProduct(deps, committed);
  const opened = { ...proof, openings_hash: openingsHash };
  if (detail !== null) return { ...opened, reason: 'POW_MISMATCH', detail };
  if (await isWalkRight(deps, memory, said, seedFor('memory'))) {
    return { ...opened, reason: null, detail: '' };
  }
  return { ...opened, reason: 'POW_MISMATCH', detail: 'The walk over its memory ended elsewhere' };
}

async function isWalkRight(
  deps: ChallengeDeps,
  asked: CardsPlan['cards'][number]['memory'],
  said: CardCommitment,
  seed: Uint8Array,
): Promise<boolean> {
  return asked === null || walkedRight(deps, { seed, asked, digest: said.memory?.digest });
}
