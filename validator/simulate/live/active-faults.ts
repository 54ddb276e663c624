/** The faults of a simulated marketplace that last now, from the events of its journal. */
import type { JournalEvent } from '../world/journal.ts';

export type ActiveFault = {
  kind: string;
  /** Id of the host; null for a fault of a region or a service. */
  executor: string | null;
  region: string | null;
  sinceMs: number;
  /** Time of the repair; a killed process needs some time to start. */
  untilMs: number;
};

export type ActiveFaults = {
  record(event: JournalEvent, atMs: number): void;
  /** Faults that last now, oldest first. */
  list(): readonly ActiveFault[];
};

const FAULT = 'fault-';

export function createActiveFaults(): ActiveFaults {
  let active: ActiveFault[] = [];

  function begin(event: JournalEvent, atMs: number): void {
    const { executor, region, lasts_ms: lastsMs } = event;
    // A jump of the clock does not last, and hosts that leave do not return.
    if (typeof lastsMs !== 'number') return;
    const kind = event.kind.slice(FAULT.length);
    active.push({
      kind,
      executor: executor ?? null,
      region: typeof region === 'string' ? region : null,
      sinceMs: atMs,
      untilMs: atMs + lastsMs,
    });
  }

  /** Removes the fault that ends first, if several are equal. */
  function end({ fault, executor, region }: JournalEvent): void {
    const [ended] = active
      .filter(
        (each) =>
          each.kind === fault &&
          each.executor === (executor ?? null) &&
          each.region === (region ?? null),
      )
      .toSorted((a, b) => a.untilMs - b.untilMs);
    active = active.filter((each) => each !== ended);
  }

  return {
    record(event, atMs) {
      if (event.kind.startsWith(FAULT)) begin(event, atMs);
      else if (event.kind === 'repair') end(event);
    },
    list: () => active,
  };
}
