/** The latest events of a simulated marketplace that people follow. */
import { CHECK_EVENT } from '../world/check-event.ts';
import type { JournalEvent } from '../world/journal.ts';

export type LatestEvent = { number: number; atMs: number; event: JournalEvent };

export type LatestEvents = {
  record(event: JournalEvent, atMs: number): void;
  /** Newest first. */
  list(): readonly LatestEvent[];
};

const RETAINED = 100;

export function createLatestEvents(): LatestEvents {
  let events: LatestEvent[] = [];
  let number = 0;
  return {
    record(event, atMs) {
      number += 1;
      if (isRoutine(event)) return;
      events = [{ number, atMs, event }, ...events.slice(0, RETAINED - 1)];
    },
    list: () => events,
  };
}

/** Requests that repeat all the time, and successful checks. */
function isRoutine({ kind, verdict }: JournalEvent): boolean {
  if (kind === CHECK_EVENT) return verdict === 'verified';
  return kind === 'seen' || kind.startsWith('validator-');
}
