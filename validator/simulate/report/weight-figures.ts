/** The newest weights against the true quality of the hosts, and what the weights of all epochs were worth. */
import type { Database } from '../../central/platform/database/tables.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { rateOf, type WeightPolicy } from '../../weights/weight-policy.ts';
import { type Epoch, epochsIn } from './epoch-figures.ts';
import { type HostTally, type KnownHost, qualityOf } from './host-tally.ts';
import { listRentedBy, type RentedBy } from './money-figures.ts';
import { sum } from './statistics.ts';
import type { Emission, WeighedHost } from './weight-schemas.ts';

const HOUR_MS = 3_600_000;
const MICRO_USD = 1_000_000;

export type WeightSources = {
  db: Database;
  store: EvidenceStore;
  policy: WeightPolicy;
  tally: HostTally;
  /** Wall-clock time, by which epochs are dated. */
  wallMs: number;
  startMs: number;
  nowMs: number;
  /** Worth of all weight in USD per hour. */
  worthUsdPerHour: number;
};

export type Weighed = { weights: WeighedHost[]; emission: Emission };

/** Returns each host with its share of the weight of all hosts, and the worth of all weight since the first epoch. */
export async function weighHosts(sources: WeightSources): Promise<Weighed> {
  const { db, store, policy, tally, nowMs, wallMs, worthUsdPerHour } = sources;
  const epochs = await epochsIn(store, policy, wallMs);
  const executors = await db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select(['executors.id', 'providers.hotkey'])
    .orderBy('executors.id')
    .execute();
  const rentedBy = await listRentedBy(db);
  const hosts = executors.flatMap(({ id, hotkey }) => {
    const host = tally.get(id);
    if (host === undefined) return [];
    const value = host.gpus * rateOf(policy, host.gpu);
    const paid = epochs.map(({ shares, hours }) => (shares.get(hotkey) ?? 0) * hours);
    const reward = sum(paid) * worthUsdPerHour;
    const money = moneyOf(host, rentedBy.get(id) ?? new Map());
    return [{ host, value, weight: epochs.at(-1)?.shares.get(hotkey) ?? 0, reward, money }];
  });
  const weight = sum(hosts.map((host) => host.weight));
  const value = sum(hosts.map((host) => host.value));
  const weights = hosts.map(({ host, reward, money, ...own }) => ({
    gpu: host.gpu,
    strategy: host.strategy,
    cheat: host.cheat,
    quality: qualityOf(host, nowMs),
    weight_share: weight === 0 ? 0 : own.weight / weight,
    value_share: value === 0 ? 0 : own.value / value,
    rents_itself: host.selfAccount !== null,
    ...money,
    reward_usd: reward,
  }));
  const emission = {
    ...emissionOf(epochs, sources, weights),
    newest_burned_share: epochs.length === 0 ? 0 : Math.max(0, 1 - weight),
  };
  return { weights: epochs.length === 0 ? [] : weights, emission };
}

/** Divides the worth of all weight since the first epoch into the rewards of hosts and the burned rest. */
function emissionOf(
  epochs: readonly Epoch[],
  { worthUsdPerHour, startMs, nowMs }: WeightSources,
  weights: readonly WeighedHost[],
): Omit<Emission, 'newest_burned_share'> {
  const hours = sum(epochs.map((epoch) => epoch.hours));
  const before = Math.max(0, (nowMs - startMs) / HOUR_MS - hours);
  const emitted = hours * worthUsdPerHour;
  const rewards = sum(weights.map(({ reward_usd: reward }) => reward));
  return {
    hours,
    hours_before: before,
    emitted_usd: emitted,
    rewards_usd: rewards,
    burned_usd: Math.max(0, emitted - rewards),
    epochs: epochs.map(({ hours: lasted, pools }, index) => ({
      from_hours: before + sum(epochs.slice(0, index).map((earlier) => earlier.hours)),
      hours: lasted,
      ...pools,
    })),
  };
}

function moneyOf({ selfAccount }: KnownHost, rentals: RentedBy) {
  const own = rentals.get(selfAccount ?? '');
  const income = sum([...rentals.values()].map(({ incomeUusd }) => incomeUusd));
  return { income_usd: income / MICRO_USD, own_rentals_usd: (own?.paidUusd ?? 0) / MICRO_USD };
}
