/** Faults of hosts and regions at seeded times. */
import type { HOST_FAULTS, ScenarioEvent } from '../scenarios/scenario.ts';
import type { World } from '../world/world.ts';
import { exponential, logNormal } from './draws.ts';
import type { Provider } from './provider.ts';
import type { ServiceFaults } from './service-faults.ts';

type FaultKind = (typeof HOST_FAULTS)[number];

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MONTH_MS = 30 * 24 * HOUR_MS;
const SLOW_FACTOR = 10;

/** Median duration of each fault in milliseconds, and the deviation of its logarithm. */
const DURATIONS: Record<FaultKind, { medianMs: number; sigma: number }> = {
  flap: { medianMs: 4 * MINUTE_MS, sigma: 1 },
  dies: { medianMs: 5 * HOUR_MS, sigma: 1 },
  slow: { medianMs: 8 * HOUR_MS, sigma: 0.5 },
  card: { medianMs: 24 * HOUR_MS, sigma: 0.5 },
};

export type Faults = {
  /** Begins one process for each kind of fault of the host. They end with `stop`. */
  begin(provider: Provider): void;
  /** Begins the events of the scenario. */
  beginEvents(providers: readonly Provider[]): void;
  /** Performs a fault of a host now, and resolves after its repair. Rejects at `stop`. */
  strike(kind: FaultKind, executorId: string, lastsMs: number): Promise<void>;
  /** Performs an event now, whatever its time, and resolves after its repair. Rejects at `stop`. */
  perform(event: ScenarioEvent, providers: readonly Provider[]): Promise<void>;
  /** Ends all faults: hosts answer again, and no further fault begins. */
  stop(): void;
};

export function createFaults(world: World, services: ServiceFaults): Faults {
  const { clock, fleet, journal, scenario } = world;
  const stopping = new AbortController();
  const { signal } = stopping;
  /** Number of reasons for which each host does not answer. */
  const outages = new Map<string, number>();
  const repairs = new Set<() => void>();

  function changeOutages(executorId: string, by: 1 | -1): void {
    const count = (outages.get(executorId) ?? 0) + by;
    outages.set(executorId, count);
    fleet.hostOf(executorId).isUp = count === 0;
  }

  /** Applies a fault, and returns its repair. */
  function apply(kind: FaultKind, executorId: string): () => void {
    const host = fleet.hostOf(executorId);
    if (kind === 'slow') {
      host.startMs *= SLOW_FACTOR;
      return () => {
        host.startMs /= SLOW_FACTOR;
      };
    }
    if (kind === 'card') {
      const { cards } = host;
      host.cards = { ...cards, count: Math.max(0, cards.count - 1) };
      return () => {
        host.cards = cards;
      };
    }
    if (kind === 'dies') fleet.losePods(executorId);
    changeOutages(executorId, 1);
    return () => changeOutages(executorId, -1);
  }

  async function suffer(provider: Provider, kind: FaultKind, perMonth: number): Promise<void> {
    const random = world.randomOf(`${provider.name} ${kind}`);
    const { medianMs, sigma } = DURATIONS[kind];
    while (!signal.aborted) {
      await clock.sleep(exponential(random, MONTH_MS / perMonth), signal);
      await strike(kind, provider.executorId, Math.round(logNormal(random, medianMs, sigma)));
    }
  }

  async function strike(kind: FaultKind, executor: string, lastsMs: number): Promise<void> {
    journal.record({ kind: `fault-${kind}`, executor, lasts_ms: lastsMs });
    await during(apply(kind, executor), lastsMs);
    journal.record({ kind: 'repair', executor, fault: kind });
  }

  async function during(repair: () => void, lastsMs: number): Promise<void> {
    repairs.add(repair);
    await clock.sleep(lastsMs, signal);
    repairs.delete(repair);
    repair();
  }

  async function performAt(event: ScenarioEvent, providers: readonly Provider[]): Promise<void> {
    await clock.sleep(event.at_hours * HOUR_MS, signal);
    await perform(event, providers);
  }

  async function perform(event: ScenarioEvent, providers: readonly Provider[]): Promise<void> {
    if (event.kind === 'leave') {
      const leaving = providers.slice(
        0,
        Math.floor((providers.length * event.share_permille) / 1_000),
      );
      for (const { executorId } of leaving) {
        journal.record({ kind: 'fault-leave', executor: executorId });
        fleet.losePods(executorId);
        changeOutages(executorId, 1);
      }
      return;
    }
    if (event.kind === 'clock') {
      clock.jump(event.by_seconds * SECOND_MS);
      journal.record({ kind: 'fault-clock', by_s: event.by_seconds });
      return;
    }
    if (event.kind !== 'region')
      return services.perform(event.kind, Math.round(event.for_hours * HOUR_MS));
    const hit = providers.filter(({ region }) => region === event.region);
    const lastsMs = Math.round(event.for_hours * HOUR_MS);
    journal.record({ kind: 'fault-region', region: event.region, lasts_ms: lastsMs });
    for (const { executorId } of hit) changeOutages(executorId, 1);
    await during(() => {
      for (const { executorId } of hit) changeOutages(executorId, -1);
    }, lastsMs);
    journal.record({ kind: 'repair', fault: 'region', region: event.region });
  }

  const detach = (work: Promise<void>): void =>
    void work.catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });

  return {
    begin(provider) {
      for (const [kind, perMonth] of Object.entries(scenario.host_faults)) {
        if (perMonth > 0) detach(suffer(provider, kind as FaultKind, perMonth));
      }
    },
    beginEvents(providers) {
      for (const event of scenario.events) detach(performAt(event, providers));
    },
    strike,
    perform,
    stop() {
      stopping.abort();
      for (const repair of repairs) repair();
      repairs.clear();
      journal.record({ kind: 'faults-end' });
    },
  };
}
