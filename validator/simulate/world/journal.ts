/**
 * Events of a simulation in the order of their time: requests of actors with their answers, commands to agents, faults and
 * verdicts. Their hash identifies the run.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '#shared/signing/canonical-json.ts';

export type JournalEvent = {
  /** Kind of the event, such as `rent` or `fault`. */
  kind: string;
  /** Ids of the objects concerned. */
  pod?: string;
  executor?: string;
  actor?: string;
  [detail: string]: string | number | boolean | null | undefined;
};

export type Journal = {
  record(event: JournalEvent): void;
  /** Number of events so far. */
  count(): number;
  /** Number of events of a kind. */
  countOf(kind: string): number;
  /** Returns the last events that concern any of these ids, oldest first. */
  traceOf(ids: readonly string[]): string[];
  /** SHA-256 over all events so far, and over `end`. */
  hash(end: unknown): string;
};

/** Number of events that are retained for the trace of a violation. */
const RETAINED = 50_000;
const MAX_TRACE = 200;

/** `write` receives each event as one line of JSON, without the line break. */
export function createJournal(nowMs: () => number, write: (line: string) => void): Journal {
  const hash = createHash('sha256');
  const counts = new Map<string, number>();
  let recent: string[] = [];
  let events = 0;

  return {
    record(event) {
      events += 1;
      counts.set(event.kind, (counts.get(event.kind) ?? 0) + 1);
      const known = Object.entries(event).filter(([, value]) => value !== undefined);
      const line = canonicalJson({ ...Object.fromEntries(known), n: events, at: nowMs() });
      hash.update(line).update('\n');
      recent.push(line);
      if (recent.length > 2 * RETAINED) recent = recent.slice(-RETAINED);
      write(line);
    },
    count: () => events,
    countOf: (kind) => counts.get(kind) ?? 0,
    traceOf: (ids) =>
      recent.filter((line) => ids.some((id) => line.includes(id))).slice(-MAX_TRACE),
    hash: (end) => hash.copy().update(canonicalJson(end)).digest('hex'),
  };
}
