/** Collects the figures of a report while a simulation runs: from its events, and from samples of its databases. */
import { DEFAULT_LAUNCH_LIMIT_MS } from '../../central/market/pods/launch-limit.ts';
import { PLATFORM_FEE_RATE } from '../../central/money/ledger/shares.ts';
import { policyHashOf } from '../../weights/weight-policy.ts';
import { SLOW_FACTOR } from '../actors/host-faults.ts';
import type { JournalEvent } from '../world/journal.ts';
import type { World } from '../world/world.ts';
import { detectionOf } from './detection.ts';
import { expectedDetection } from './expected-detection.ts';
import { effectsOf } from './fault-effects.ts';
import { createHostTally } from './host-tally.ts';
import { countByHour } from './hourly-counts.ts';
import { type RegionAtTime, sampleMarket } from './market-sample.ts';
import {
  listIncomes,
  listPodMoney,
  listSpend,
  listUsedTime,
  sampleLedger,
} from './money-figures.ts';
import { createPriceTally } from './price-tally.ts';
import { createRentalTally, type RentalCounts } from './rental-tally.ts';
import type { LedgerSample, MarketSample, Report } from './report.ts';
import { sum } from './statistics.ts';
import { usageOf } from './usage-figures.ts';
import { weighHosts } from './weight-figures.ts';

/** The part of a report that is known while the world still exists. */
export type Collected = Pick<
  Report,
  | 'market'
  | 'regions'
  | 'requests'
  | 'usage'
  | 'prices'
  | 'faults'
  | 'rentals'
  | 'spend'
  | 'incomes_usd'
  | 'weights'
  | 'emission'
  | 'detection'
  | 'ledger'
> & { policy: string; hours: number };

export type Collector = {
  /** Receives each event, in order. */
  record(event: JournalEvent, atMs: number): void;
  /** Call once for each simulated hour. */
  sample(world: World): Promise<void>;
  /** Returns the figures until now. */
  end(world: World): Promise<Collected>;
};

const HOUR_MS = 3_600_000;
const SECOND_MS = 1_000;
/** The ledger has an account for each renter and provider, so it is read less often than the market. */
const LEDGER_HOURS = 6;

export function createCollector(startMs: number): Collector {
  const rentals = createRentalTally();
  const hosts = createHostTally();
  const prices = createPriceTally();
  const market: MarketSample[] = [];
  const regions: RegionAtTime[] = [];
  const ledger: LedgerSample[] = [];
  const regionOf = (executor: string): string => hosts.get(executor)?.region ?? '';
  const hoursAt = (ms: number): number => (ms - startMs) / HOUR_MS;

  return {
    record(event, atMs) {
      rentals.record(event, atMs);
      hosts.record(event, atMs);
      prices.record(event);
    },

    async sample({ db, clock }) {
      const atHours = hoursAt(clock.steadyMs());
      const sampled = await sampleMarket(db, { atHours, regionOf, askedUsd: prices.meanUsd });
      market.push(...sampled.models);
      regions.push(...sampled.regions);
      if (Math.round(atHours) % LEDGER_HOURS === 0) ledger.push(await sampleLedger(db, atHours));
    },

    async end(world) {
      const { db, store, clock, scenario, weightPolicy } = world;
      const nowMs = clock.steadyMs();
      const hours = hoursAt(nowMs);
      const counts = rentals.counts();
      const used = await listUsedTime(db, clock.now());
      const isSampled = ledger.at(-1)?.at_hours === hours;
      return {
        hours,
        policy: policyHashOf(weightPolicy),
        market: [...market],
        ...countByHour({ regions, counts, regionOf, hoursAt }),
        ledger: isSampled ? [...ledger] : [...ledger, await sampleLedger(db, hours)],
        rentals: rentalsOf(counts, { regionOf, hoursAt }),
        usage: usageOf(used, (executor) => hosts.get(executor)?.gpu ?? ''),
        prices: prices.prices(),
        faults: effectsOf({
          faults: hosts.faults(),
          used,
          lost: counts.lost,
          money: await listPodMoney(db),
          providerShare: 1 - PLATFORM_FEE_RATE,
          failedChecks: hosts.failedChecks(),
          hostOf: hosts.get,
          startMs,
          endMs: nowMs,
        }),
        spend: await listSpend(db, rentals.quotes()),
        incomes_usd: await listIncomes(db),
        ...(await weighHosts({
          db,
          store,
          policy: weightPolicy,
          tally: hosts,
          startMs,
          nowMs,
          wallMs: clock.now(),
          worthUsdPerHour: scenario.weights_worth_usd_per_hour,
        })),
        detection: detectionOf([...hosts.hosts()], (cheat) =>
          expectedDetection(cheat, { atMs: startMs, weights: weightPolicy }),
        ),
      };
    },
  };
}

type Places = { regionOf(executor: string): string; hoursAt(ms: number): number };

function rentalsOf(counts: RentalCounts, { regionOf, hoursAt }: Places): Report['rentals'] {
  return {
    requested: counts.accepted + sum([...counts.refusals.values()]),
    accepted: counts.accepted,
    refusals: Object.fromEntries(counts.refusals),
    start_seconds: [...counts.startSeconds],
    failed_starts: Object.fromEntries(counts.failedStarts),
    start_limit_seconds: DEFAULT_LAUNCH_LIMIT_MS / SECOND_MS,
    slow_start_factor: SLOW_FACTOR,
    interruptions: counts.interruptions.map(({ at_ms: at, executor, ...interruption }) => ({
      at_hours: hoursAt(at),
      ...interruption,
      region: regionOf(executor),
    })),
    completed: counts.completed,
    open: counts.open,
  };
}
