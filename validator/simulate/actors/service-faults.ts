/** Faults of the services at seeded times: processes are killed, the registry is down, payments are late or repeated. */
import type { SERVICE_FAULTS } from '../scenarios/scenario.ts';
import type { World } from '../world/world.ts';
import { exponential, logNormal } from './draws.ts';
import type { FaultEndings } from './fault-endings.ts';

export type ServiceFaultKind = (typeof SERVICE_FAULTS)[number];

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MONTH_MS = 30 * 24 * HOUR_MS;
const TWICE = 2;
/** A process is killed during one of this many database operations after the time of the fault. */
const KILLED_WITHIN = 200;

/** Median duration of each fault in milliseconds, and the deviation of its logarithm. */
const DURATIONS: Record<ServiceFaultKind, { medianMs: number; sigma: number }> = {
  central: { medianMs: 5 * MINUTE_MS, sigma: 1 },
  validator: { medianMs: 20 * MINUTE_MS, sigma: 1 },
  registry: { medianMs: HOUR_MS, sigma: 1 },
  'payments-late': { medianMs: 2 * HOUR_MS, sigma: 1 },
  'payments-twice': { medianMs: 12 * HOUR_MS, sigma: 0.5 },
};

export type ServiceFaults = {
  /** Begins one process for each kind of fault of the scenario. They end with `stop`. */
  begin(): void;
  /** Performs one fault now, and resolves after its repair. */
  perform(kind: ServiceFaultKind, lastsMs: number): Promise<void>;
  /** Ends all faults: killed processes start at once, and no further fault begins. */
  stop(): void;
};

export function createServiceFaults(
  { world, endings }: { world: World; endings: FaultEndings },
  onError: (error: unknown) => void,
): ServiceFaults {
  const { clock, fleet, journal, scenario, services } = world;
  const stopping = new AbortController();
  const { signal } = stopping;
  /** Number of present faults of each kind. */
  const present = new Map<ServiceFaultKind, number>();

  const isPresent = (kind: ServiceFaultKind): boolean => (present.get(kind) ?? 0) > 0;

  function change(kind: ServiceFaultKind, by: 1 | -1): void {
    present.set(kind, (present.get(kind) ?? 0) + by);
    fleet.registry.isUp = !isPresent('registry');
    services.payments.isLate = isPresent('payments-late');
    services.payments.reports = isPresent('payments-twice') ? TWICE : 1;
  }

  /** Records the fault and waits as long as it lasts, or until all faults end. Returns the number of its event. */
  async function suffered(kind: ServiceFaultKind, lastsMs: number): Promise<number> {
    journal.record({ kind: `fault-${kind}`, lasts_ms: lastsMs });
    const began = journal.count();
    await endings.during(began, lastsMs, signal).catch(() => undefined);
    return began;
  }

  async function perform(kind: ServiceFaultKind, lastsMs: number): Promise<void> {
    if (kind === 'central' || kind === 'validator') {
      const random = world.randomOf(`${kind} killed at ${clock.steadyMs()}`);
      const service = services[kind];
      // Two faults at a time are one.
      if (!service.isRunning()) return;
      await service.killAfter(1 + random.int(KILLED_WITHIN));
      const began = await suffered(kind, lastsMs);
      await service.start();
      journal.record({ kind: 'repair', fault: kind, began });
    } else {
      change(kind, 1);
      const began = await suffered(kind, lastsMs);
      change(kind, -1);
      journal.record({ kind: 'repair', fault: kind, began });
    }
  }

  async function suffer(kind: ServiceFaultKind, perMonth: number): Promise<void> {
    const random = world.randomOf(`services ${kind}`);
    const { medianMs, sigma } = DURATIONS[kind];
    for (;;) {
      await clock.sleep(exponential(random, MONTH_MS / perMonth), signal);
      await perform(kind, Math.round(logNormal(random, medianMs, sigma)));
    }
  }

  return {
    begin() {
      for (const [kind, perMonth] of Object.entries(scenario.service_faults)) {
        if (perMonth === 0) continue;
        suffer(kind as ServiceFaultKind, perMonth).catch((error: unknown) => {
          if (!signal.aborted) onError(error);
        });
      }
    },
    perform,
    stop: () => stopping.abort(),
  };
}
