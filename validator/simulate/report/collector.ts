/** Collects the figures of a report while a simulation runs: from its events, and from samples of its databases. */
import { policyHashOf } from '../../weights/weight-policy.ts';
import type { JournalEvent } from '../world/journal.ts';
import type { World } from '../world/world.ts';
import { detectionOf } from './detection.ts';
import { createHostTally } from './host-tally.ts';
import { sampleMarket } from './market-sample.ts';
import { listIncomes, listSpend, sampleLedger } from './money-figures.ts';
import { createRentalTally } from './rental-tally.ts';
import type { LedgerSample, MarketSample, Report } from './report.ts';
import { weighHosts } from './weight-figures.ts';

/** The part of a report that is known while the world still exists. */
export type Collected = Pick<
  Report,
  'market' | 'rentals' | 'spend' | 'incomes_usd' | 'weights' | 'detection' | 'ledger'
> & { policy: string; hours: number };

export type Collector = {
  /** Receives each event, in order. */
  record(event: JournalEvent, atMs: number): void;
  /** Call once for each simulated hour. */
  sample(world: World): Promise<void>;
  /** Call at the end, before the world is closed. */
  end(world: World): Promise<Collected>;
};

const HOUR_MS = 3_600_000;
/** The ledger has an account for each renter and provider, so it is read less often than the market. */
const LEDGER_HOURS = 6;

export function createCollector(startMs: number): Collector {
  const rentals = createRentalTally();
  const hosts = createHostTally();
  const market: MarketSample[] = [];
  const ledger: LedgerSample[] = [];

  return {
    record(event, atMs) {
      rentals.record(event, atMs);
      hosts.record(event, atMs);
    },

    async sample({ db, clock }) {
      const atHours = (clock.steadyMs() - startMs) / HOUR_MS;
      market.push(...(await sampleMarket(db, atHours)));
      if (Math.round(atHours) % LEDGER_HOURS === 0) ledger.push(await sampleLedger(db, atHours));
    },

    async end({ db, store, clock, scenario, weightPolicy }) {
      const nowMs = clock.steadyMs();
      const hours = (nowMs - startMs) / HOUR_MS;
      ledger.push(await sampleLedger(db, hours));
      const counts = rentals.counts();
      const refused = [...counts.refusals.values()].reduce((sum, count) => sum + count, 0);
      return {
        hours,
        policy: policyHashOf(weightPolicy),
        market,
        ledger,
        rentals: {
          requested: counts.accepted + refused,
          accepted: counts.accepted,
          refusals: Object.fromEntries(counts.refusals),
          start_seconds: [...counts.startSeconds],
          failed_starts: Object.fromEntries(counts.failedStarts),
          interruptions: counts.interruptions.map(({ at_ms: at, ...interruption }) => ({
            at_hours: (at - startMs) / HOUR_MS,
            ...interruption,
          })),
          completed: counts.completed,
          open: counts.open,
        },
        spend: await listSpend(db, rentals.quotes()),
        incomes_usd: await listIncomes(db),
        weights: await weighHosts({
          db,
          store,
          policy: weightPolicy,
          tally: hosts,
          nowMs,
          wallMs: clock.now(),
          worthUsdPerHour: scenario.weights_worth_usd_per_hour,
        }),
        detection: detectionOf([...hosts.hosts()]),
      };
    },
  };
}
