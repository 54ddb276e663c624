/** The story of pods: their events, and those of their nodes while they existed. Pure except for its own lists. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { CHECK_EVENT } from '../world/check-event.ts';
import type { JournalEvent } from '../world/journal.ts';

export type StoryTeller = {
  /** Receives each event, in order. */
  record(event: JournalEvent, atMs: number): void;
  /** Ids of the pods, oldest first. */
  pods(): readonly string[];
  /** One line for each event. */
  lines(): string[];
};

/** Pods and events beyond these numbers are not retained, so that a forgotten name costs no memory. */
const MAX_PODS = 50;
const MAX_LINES = 5_000;

/** Events of accepted rentals: of renters, and of providers that rent their own host. */
const RENTALS = new Set(['rented', 'self-rented']);

/** `wanted`: id of a pod, or the name of its renter, which is the name of all its pods. */
export function createStoryTeller(wanted: string): StoryTeller {
  /** Pods of the story, and their nodes until they end. */
  const nodes = new Map<string, string | null>();
  const lines: string[] = [];
  let left = 0;

  function belongs(event: JournalEvent): boolean {
    if (RENTALS.has(event.kind) && event.pod !== undefined && !nodes.has(event.pod)) {
      const isWanted = event.pod === wanted || event.actor === wanted;
      if (isWanted && nodes.size < MAX_PODS) nodes.set(event.pod, event.executor ?? null);
    }
    if (event.pod !== undefined) return nodes.has(event.pod) || event.pod === wanted;
    if (event.actor === wanted) return true;
    if (event.executor === undefined || event.kind === CHECK_EVENT) return false;
    return [...nodes.values()].includes(event.executor);
  }

  return {
    record(event, atMs) {
      if (!belongs(event)) return;
      if (lines.length < MAX_LINES) lines.push(lineOf(event, atMs));
      else left += 1;
      if (event.kind === 'ended' && event.pod !== undefined) nodes.set(event.pod, null);
    },
    pods: () => [...nodes.keys()],
    lines: () => (left === 0 ? lines : [...lines, `… and ${left} more events`]),
  };
}

function lineOf({ kind, ...details }: JournalEvent, atMs: number): string {
  const known = Object.entries(details).filter(([, value]) => value !== undefined);
  const text = known.map(([name, value]) => `${name}=${String(value)}`).join(' ');
  return `${naiveUtc(atMs)}  ${kind.padEnd(16)} ${text}`;
}
