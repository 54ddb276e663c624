/** The faults of a simulated marketplace that last now, from the events of its journal. */
import type { JournalEvent } from '../world/journal.ts';

export type ActiveFault = {
  /** Number of the event that began the fault. */
  number: number;
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
  let number = 0;

  function begin(event: JournalEvent, atMs: number): void {
    const { executor, region, lasts_ms: lastsMs } = event;
    // A jump of the clock does not last, and most hosts that leave do not return.
    if (typeof lastsMs !== 'number') return;
    const kind = event.kind.slice(FAULT.length);
    active.push({
      number,
      kind,
      executor: executor ?? null,
      region: typeof region === 'string' ? region : null,
      sinceMs: atMs,
      untilMs: atMs + lastsMs,
    });
  }

  return {
    record(event, atMs) {
      number += 1;
      if (event.kind.startsWith(FAULT)) begin(event, atMs);
      else if (event.kind === 'repair') {
        active = active.filter((each) => each.number !== event['began']);
      }
    },
    list: () => active,
  };
}
