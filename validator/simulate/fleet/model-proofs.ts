/** Proofs of work that cost nothing: hashes of the challenge's seed, which only a host computes that received it. */
import { createHash } from 'node:crypto';
import type { ChallengeRequest, Commitment } from '#shared/api/agent/challenges.ts';
import { seedOf } from '#shared/proof-of-work/seed.ts';
import type { Verifier } from '../../inspection/proof/verifier.ts';

export const sha256 = (...parts: readonly (string | Uint8Array)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};

/** Hashes that only a host can compute that has the seed of the challenge; they replace the work. */
const rootFor = (seed: Uint8Array) => sha256('root', seed);
/** State of a walk, which the fleet's verifier ignores. */
export const ANY_STATE = sha256('state');

export const FLEET_VERIFIER: Verifier = {
  rows: async ({ committed }) =>
    Buffer.from(committed.root).toString('hex') === rootFor(committed.seed) ? null : 'wrong',
  fill: async ({ committed }) =>
    Buffer.from(committed.root).toString('hex') === rootFor(committed.seed) ? null : 'wrong_block',
  close: async () => undefined,
};

/** Answers a challenge with products of one round. */
export function commitmentTo({
  challenge_id,
  nonce,
  executor_id: executorId,
  product,
  memory,
  disk,
  gpu,
}: ChallengeRequest): Commitment {
  const seed = (device: string, purpose: 'product' | 'memory' | 'disk') =>
    seedOf({ nonce, executorId, device, purpose });
  const filled = (device: string, purpose: 'memory' | 'disk') => ({
    root: rootFor(seed(device, purpose)),
    fill_ms: 0,
  });
  const productOn = (device: string) => ({ roots: [rootFor(seed(device, 'product'))], ms: 0 });
  return {
    challenge_id,
    device: 'cpu',
    workers: 1,
    product: product === null ? null : productOn('cpu'),
    memory: memory === null ? null : filled('memory', 'memory'),
    disk: disk === null ? null : filled('disk', 'disk'),
    cards:
      gpu?.cards.map(({ uuid, memory: asked }) => ({
        uuid,
        fault: null,
        product: productOn(uuid),
        memory: asked === null ? null : filled(uuid, 'memory'),
      })) ?? null,
  };
}
