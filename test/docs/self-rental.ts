/** Table of the gain or loss of a provider that rents its own node, computed from the default weight policy. */
import { netFee } from '../../validator/central/money/ledger/shares.ts';
import { computeWeights } from '../../validator/weights/compute-weights.ts';
import type { CycleEntry } from '../../validator/weights/cycle-set.ts';
import {
  DEFAULT_POLICY_FILE,
  readWeightPolicy,
  type WeightPolicy,
} from '../../validator/weights/weight-policy.ts';
import { entryOf, H100, hotkey, setOf } from '../fixtures/cycle-set.ts';

const GPUS = 8;
/** Numbers of other nodes of eight GPUs that are rented; as many again are idle. */
const MARKETS = [0, 1, 10, 100, 1_000];
const OWN = hotkey(200);
const OTHERS = hotkey(201);
const HOURS = 8;
const HOUR_MS = 3_600_000;
const ALL = 65_535;
const UUSD = 1_000_000;

type Renting = { policy: WeightPolicy; others: number; isRented: boolean };

/** Returns the provider's share of the total weight; its node has every bonus. */
function shareOf({ policy, others, isRented }: Renting): number {
  const feePerHour = netFee((policy.rates_uusd[H100] ?? 0) * GPUS);
  const cycleOf = (hours: number): CycleEntry[] => {
    const paid = { gpu_count: GPUS, paid_fees_uusd: feePerHour * hours };
    const own = { hotkey: OWN, runtime_proven: true, chat_linked: true, rented: isRented };
    return [
      entryOf(1, { ...paid, ...own, ...(isRented ? {} : { paid_fees_uusd: 0 }) }),
      ...Array.from({ length: 2 * others }, (_, at) =>
        at % 2 === 0
          ? entryOf(at + 2, { ...paid, hotkey: OTHERS, rented: true })
          : entryOf(at + 2, { ...paid, hotkey: OTHERS, paid_fees_uusd: 0 }),
      ),
    ];
  };
  const window = { ends_ms: 0, length_ms: HOURS * HOUR_MS };
  const set = setOf([cycleOf(0), cycleOf(HOURS)], { window });
  const { uids = [], weights = [] } = computeWeights(set, policy) ?? {};
  const uid = set.neurons.find((neuron) => neuron.hotkey === OWN)?.uid ?? -1;
  return (weights[uids.indexOf(uid)] ?? 0) / ALL;
}

/** Amounts in USD per hour. */
export type SelfRental = {
  others: number;
  fee: number;
  /** Rewards of the node while it is rented and while it is idle. */
  rented: number;
  idle: number;
  /** Gain from the rental if the pools were shared in full, whatever was paid. */
  gainOfFullPools: number;
};

/** Returns cost and rewards of a provider that rents its own node of eight H100, for each size of the market. */
export function selfRentals(): SelfRental[] {
  const policy = readWeightPolicy(DEFAULT_POLICY_FILE);
  const { rewards, ...full } = policy;
  const value = (rewards?.value_uusd_per_hour ?? 0) / UUSD;
  const fee = netFee((policy.rates_uusd[H100] ?? 0) * GPUS) / UUSD;
  const reward = (renting: Renting) => shareOf(renting) * value;
  return MARKETS.map((others) => ({
    others,
    fee,
    rented: reward({ policy, others, isRented: true }),
    idle: reward({ policy, others, isRented: false }),
    gainOfFullPools:
      reward({ policy: full, others, isRented: true }) -
      reward({ policy: full, others, isRented: false }) -
      fee,
  }));
}

export function selfRentalTable(): string {
  const usd = (amount: number) => (amount < 0 ? `−${(-amount).toFixed(2)}` : amount.toFixed(2));
  const rows = selfRentals().map(({ others, fee, rented, idle, gainOfFullPools }) => {
    const amounts = [fee, rented, idle, rented - idle - fee, gainOfFullPools].map(usd);
    return `| ${[others * GPUS, ...amounts].join(' | ')} |`;
  });
  return [
    '| GPUs rented by others | Fee lost | Reward, rented | Reward, idle | Gain | Gain if pools were shared in full |',
    '|---|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
