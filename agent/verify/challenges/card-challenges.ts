/** The part of a challenge that GPUs answer: seeds per card, and rows of products that are opened later. */
import {
  type CardCommitment,
  type ChallengeRequest,
  type OpenedRow,
  type OpenRequest,
  toWalk,
} from '#shared/api/agent/challenges.ts';
import { roundSeeds, seedOf } from '#shared/proof-of-work/seed.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { CardTask, GpuProof } from './gpu-proof.ts';

/** Product of a card. The seed of each round suffices to recompute its rows. */
export type CardProduct = { n: number; seeds: readonly Uint8Array[] };

export type CardChallenges = ReturnType<typeof createCardChallenges>;

type Bounds = { deadlineMs: number; signal: AbortSignal };

export function createCardChallenges({
  executorId,
  gpuProof,
}: {
  executorId: string;
  gpuProof: Pick<GpuProof, 'image' | 'commit' | 'open'>;
}) {
  function tasksOf({ nonce, gpu }: ChallengeRequest): CardTask[] {
    if (gpu === null) return [];
    return gpu.cards.map(({ uuid, memory }) => {
      const seedFor = (purpose: 'product' | 'memory') =>
        seedOf({ nonce, executorId, device: uuid, purpose });
      const task = { uuid, ...gpu.product, seed: seedFor('product') };
      return { ...task, memory: memory && { walk: toWalk(memory), seed: seedFor('memory') } };
    });
  }

  return {
    /**
     * `cards` is null if the challenge names none or this node cannot run the proof. Pass a card's entry of `products`,
     * which is keyed by UUID, to `open`.
     */
    async commit(
      request: ChallengeRequest,
      signal: AbortSignal,
    ): Promise<{ cards: CardCommitment[] | null; products: Map<string, CardProduct> }> {
      const image = request.gpu === null ? null : await gpuProof.image();
      if (image === null) return { cards: null, products: new Map() };
      const tasks = tasksOf(request);
      const run = { image, signal, deadlineMs: request.deadline_ms };
      const cards = await gpuProof.commit(tasks, run);
      const products = tasks.map(({ uuid, n, seed }): [string, CardProduct] => {
        const product = cards.find((card) => card.uuid === uuid)?.product;
        const roots = (product?.roots ?? []).map((root) => Buffer.from(root, 'hex'));
        return [uuid, { n, seeds: roundSeeds(seed, roots) }];
      });
      return { cards, products: new Map(products) };
    },

    /** Throws 409 if the card cannot recompute the rows. */
    async open(
      uuid: string,
      { n, seeds }: CardProduct,
      rows: OpenRequest['rows'],
      { deadlineMs, signal }: Bounds,
    ): Promise<OpenedRow[]> {
      const image = await gpuProof.image();
      if (image === null) throw new ApiError('conflict', 'This node cannot run the GPU proof');
      const rounds = seeds.flatMap((seed, round) => {
        const indices = rows.filter((row) => row.round === round).map(({ index }) => index);
        return indices.length === 0 ? [] : [{ round, seed, indices }];
      });
      const opened = await gpuProof.open({ uuid, n, rounds }, { image, deadlineMs, signal });
      if ('done' in opened) return opened.done;
      const { code, detail } = opened.fault;
      throw new ApiError('conflict', `${uuid} did not open its rows: ${code}: ${detail}`);
    },
  };
}
