/** Faults of single hosts at seeded times, and the reasons for which hosts do not answer. */
import type { HOST_FAULTS } from '../scenarios/scenario.ts';
import type { World } from '../world/world.ts';
import { exponential, logNormal } from './draws.ts';
import type { FaultEndings } from './fault-endings.ts';
import type { Provider } from './provider.ts';

type FaultKind = (typeof HOST_FAULTS)[number];

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MONTH_MS = 30 * 24 * HOUR_MS;
/** Factor by which the fault `slow` delays the start of a pod. */
export const SLOW_FACTOR = 10;

/** Median duration of each fault in milliseconds, and the deviation of its logarithm. */
const DURATIONS: Record<FaultKind, { medianMs: number; sigma: number }> = {
  flap: { medianMs: 4 * MINUTE_MS, sigma: 1 },
  dies: { medianMs: 5 * HOUR_MS, sigma: 1 },
  slow: { medianMs: 8 * HOUR_MS, sigma: 0.5 },
  card: { medianMs: 24 * HOUR_MS, sigma: 0.5 },
};

/** `number`: number of the event that began the fault. */
export type LastingFault = { number: number; lastsMs: number };

export type HostFaults = {
  /** Begins one process for each kind of fault of the host. They end with `stop`. */
  begin(provider: Provider): void;
  /** Performs a fault of a host now, and resolves after its repair. Rejects at `stop`. */
  strike(kind: FaultKind, executorId: string, lastsMs: number): Promise<void>;
  /** Adds a reason for which each of the hosts does not answer, and removes it after the fault or at `stop`. */
  cutOff(executorIds: readonly string[], fault: LastingFault): Promise<void>;
  /**
   * Withdraws a host with its pods. It answers again after the fault, and without one only after `stop`, so that the
   * central API can end its pods.
   */
  withdraw(executorId: string, fault: LastingFault | null): Promise<void>;
  /** Ends all faults: hosts answer again, and no further fault begins. */
  stop(): void;
};

export function createHostFaults(world: World, endings: FaultEndings): HostFaults {
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
    const began = journal.count();
    await during(apply(kind, executor), { number: began, lastsMs });
    journal.record({ kind: 'repair', executor, fault: kind, began });
  }

  async function during(repair: () => void, { number, lastsMs }: LastingFault): Promise<void> {
    repairs.add(repair);
    await endings.during(number, lastsMs, signal);
    repairs.delete(repair);
    repair();
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
    strike,
    cutOff(executorIds, fault) {
      for (const executorId of executorIds) changeOutages(executorId, 1);
      return during(() => {
        for (const executorId of executorIds) changeOutages(executorId, -1);
      }, fault);
    },
    async withdraw(executorId, fault) {
      fleet.losePods(executorId);
      changeOutages(executorId, 1);
      const repair = () => changeOutages(executorId, -1);
      if (fault === null) repairs.add(repair);
      else await during(repair, fault);
    },
    stop() {
      stopping.abort();
      for (const repair of repairs) repair();
      repairs.clear();
      journal.record({ kind: 'faults-end' });
    },
  };
}
