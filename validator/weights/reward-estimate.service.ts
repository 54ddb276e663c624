/** Answers what a node would earn, from the last closed cycle of the ledger. */
import type { RewardQuestion, RewardShares } from '#shared/api/central/validator-routes.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Ledger } from '../store/ledger.tables.ts';
import { lastCycle, readCycle } from './cycle.store.ts';
import type { Cycle } from './cycle-set.ts';
import type { Metagraph } from './metagraph.ts';
import { estimateRewards, kindOf, type PresentMarket } from './reward-estimate.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** Answers that are kept until the next cycle. */
const MAX_KEPT = 5_000;

export type RewardEstimatesOptions = {
  ledger: Ledger;
  policy: WeightPolicy;
  validator: Hotkey;
  /** Whether simulated GPUs score. */
  embedded: boolean;
  /** Null: nobody knows who is registered. */
  metagraph: Metagraph | null;
};

export type RewardEstimates = ReturnType<typeof createRewardEstimates>;

export function createRewardEstimates(options: RewardEstimatesOptions) {
  const { ledger, policy, validator, embedded, metagraph } = options;
  /** Of a large fleet a cycle is long: read and reckoned with once for all who ask, until the next one is closed. */
  let read: { number: number | null; market: Promise<PresentMarket> } | null = null;
  const kept = new Map<string, RewardShares>();

  async function marketAt(number: number | null): Promise<PresentMarket> {
    const cycle: Cycle | null =
      number === null ? null : ((await readCycle(ledger, number)) ?? null);
    const hotkeys = new Set(cycle?.entries.map(({ hotkey }) => hotkey));
    const neurons = metagraph === null ? null : (await metagraph.read([...hotkeys])).neurons;
    return { validator, embedded, neurons, cycle };
  }

  return {
    async estimate(question: RewardQuestion): Promise<RewardShares> {
      const number = (await lastCycle(ledger))?.number ?? null;
      if (read === null || read.number !== number) {
        const market = marketAt(number);
        kept.clear();
        read = { number, market };
        // What failed once is asked for again.
        market.catch(() => {
          read = null;
        });
      }
      const market = await read.market;
      const kind = `${number} ${kindOf(question, market, policy)}`;
      const known = kept.get(kind);
      if (known !== undefined) return known;
      const shares = estimateRewards(question, market, policy);
      if (kept.size < MAX_KEPT) kept.set(kind, shares);
      return shares;
    },
  };
}
