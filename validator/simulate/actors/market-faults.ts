/** Faults of many parties, at the times of the scenario's events and at seeded times. */
import type { Random } from '#shared/runtime/random.ts';
import type { MARKET_FAULTS, ScenarioEvent } from '../scenarios/scenario.ts';
import type { World } from '../world/world.ts';
import { exponential, logNormal, unit } from './draws.ts';
import type { HostFaults } from './host-faults.ts';
import type { Provider } from './provider.ts';
import type { ServiceFaults } from './service-faults.ts';

type FaultKind = (typeof MARKET_FAULTS)[number];
type MarketEvent = Extract<ScenarioEvent, { kind: FaultKind }>;

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const MONTH_MS = 30 * 24 * HOUR_MS;
const PERMILLE = 1_000;
/** Median duration of an outage of a region in hours, and the deviation of its logarithm. */
const OUTAGE = { medianHours: 3, sigma: 0.8 };
/** Median of the seconds by which the wall clock jumps, the deviation of its logarithm, and the largest jump. */
const JUMP = { medianS: 120, sigma: 1.5, mostS: 6 * 3_600 };
/** Largest share of the hosts that leave at once. */
const MOST_LEAVE_PERMILLE = 50;

export type MarketFaults = {
  /** Begins the events of the scenario, and one process for each kind of fault. They end with `stop`. */
  begin(providers: readonly Provider[]): void;
  /** Performs an event now, whatever its time, and resolves after its repair. Rejects at `stop`. */
  perform(event: ScenarioEvent): Promise<void>;
  stop(): void;
};

type Parts = { world: World; hosts: HostFaults; services: ServiceFaults };

export function createMarketFaults(
  { world, hosts, services }: Parts,
  onError: (error: unknown) => void,
): MarketFaults {
  const { clock, journal, scenario } = world;
  const stopping = new AbortController();
  const { signal } = stopping;
  const leaving = world.randomOf('market leaving');
  /** Hosts that have not left. */
  let present: readonly Provider[] = [];

  async function performMarket(event: MarketEvent): Promise<void> {
    if (event.kind === 'region') return cutOff(event.region, Math.round(event.for_hours * HOUR_MS));
    if (event.kind === 'leave') return leave(event.share_permille, event.for_hours ?? null);
    clock.jump(event.by_seconds * SECOND_MS);
    journal.record({ kind: 'fault-clock', by_s: event.by_seconds });
  }

  async function cutOff(region: string, lastsMs: number): Promise<void> {
    const hit = present.filter((provider) => provider.region === region);
    journal.record({ kind: 'fault-region', region, lasts_ms: lastsMs });
    const began = journal.count();
    await hosts.cutOff(
      hit.map(({ executorId }) => executorId),
      { number: began, lastsMs },
    );
    journal.record({ kind: 'repair', fault: 'region', region, began });
  }

  async function leave(sharePermille: number, forHours: number | null): Promise<void> {
    if (present.length === 0) return;
    const count = Math.ceil((present.length * sharePermille) / PERMILLE);
    const first = leaving.int(present.length);
    const gone = new Set([...present, ...present].slice(first, first + count));
    present = present.filter((provider) => !gone.has(provider));
    const lastsMs = forHours === null ? null : Math.round(forHours * HOUR_MS);
    await Promise.all([...gone].map((provider) => leaveWith(provider, lastsMs)));
  }

  /** `lastsMs`: time until the host returns; null for a host that does not. */
  async function leaveWith(provider: Provider, lastsMs: number | null): Promise<void> {
    const { executorId: executor } = provider;
    const kind = 'fault-leave';
    if (lastsMs === null) {
      journal.record({ kind, executor });
      return hosts.withdraw(executor, null);
    }
    journal.record({ kind, executor, lasts_ms: lastsMs });
    const began = journal.count();
    await hosts.withdraw(executor, { number: began, lastsMs });
    present = [...present, provider];
    journal.record({ kind: 'repair', executor, fault: 'leave', began });
  }

  async function performAt(event: ScenarioEvent): Promise<void> {
    await clock.sleep(event.at_hours * HOUR_MS, signal);
    await perform(event);
  }

  async function perform(event: ScenarioEvent): Promise<void> {
    if (event.kind === 'region' || event.kind === 'leave' || event.kind === 'clock') {
      return performMarket(event);
    }
    await services.perform(event.kind, Math.round(event.for_hours * HOUR_MS));
  }

  async function suffer(kind: FaultKind, perMonth: number): Promise<void> {
    const random = world.randomOf(`market ${kind}`);
    for (;;) {
      await clock.sleep(exponential(random, MONTH_MS / perMonth), signal);
      await performMarket(drawEvent(kind, random, scenario.supply.regions));
    }
  }

  const detach = (work: Promise<void>): void =>
    void work.catch((error: unknown) => {
      if (!signal.aborted) onError(error);
    });

  return {
    begin(providers) {
      present = providers;
      for (const event of scenario.events) detach(performAt(event));
      for (const [kind, perMonth] of Object.entries(scenario.market_faults)) {
        if (perMonth > 0) detach(suffer(kind as FaultKind, perMonth));
      }
    },
    perform,
    stop: () => stopping.abort(),
  };
}

/** Draws an event that happens now. */
function drawEvent(kind: FaultKind, random: Random, regions: readonly string[]): MarketEvent {
  if (kind === 'region') {
    const region = regions[random.int(regions.length)] ?? '';
    const hours = logNormal(random, OUTAGE.medianHours, OUTAGE.sigma);
    return { kind, at_hours: 0, for_hours: hours, region };
  }
  if (kind === 'leave') {
    return { kind, at_hours: 0, share_permille: 1 + random.int(MOST_LEAVE_PERMILLE) };
  }
  const seconds = Math.round(Math.min(logNormal(random, JUMP.medianS, JUMP.sigma), JUMP.mostS));
  return { kind, at_hours: 0, by_seconds: unit(random) < 0.5 ? seconds : -seconds };
}
