/** The only writer of pod rows: checks each move, keeps times, conditions and the event log in step. */
import { ZodError } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { type DatabaseSync, inTransaction } from '#shared/runtime/sqlite.ts';
import { deriveConditions } from './pod.conditions.ts';
import { conditionsOf } from './pod.record.ts';
import { mayMove } from './pod.state.ts';
import type { PodRow, PodStore } from './pod.store.ts';

type Kept = 'id' | 'phase_since_ms' | 'conditions_json' | 'created_ms' | 'updated_ms';
export type PodPatch = Partial<Omit<PodRow, Kept>>;

export type PodRecords = ReturnType<typeof createPodRecords>;

/** Reads and writes happen without an await in between, so nobody can change a row under the other's hands. */
export function createPodRecords(ports: {
  database: DatabaseSync;
  pods: PodStore;
  clock: Clock;
  /** Called with every row written, inside the transaction. */
  onWrite(): void;
}) {
  const { database, pods, clock } = ports;

  function write(before: PodRow | null, next: PodRow): PodRow {
    if (before !== null && !mayMove(before.phase, next.phase)) {
      throw new Error(`pod ${next.id} cannot move from ${before.phase} to ${next.phase}`);
    }
    const now = clock.now();
    const moved = before?.phase !== next.phase;
    const row = { ...next, updated_ms: now, phase_since_ms: moved ? now : next.phase_since_ms };
    row.conditions_json = JSON.stringify(deriveConditions(row, conditionsOf(next)));
    pods.put(row);
    ports.onWrite();
    if (moved || before?.reason !== row.reason) pods.addEvent(row);
    return row;
  }

  /** Inside a transaction of the caller's. */
  function apply(id: string, decide: (row: PodRow) => PodPatch | null): PodRow | null {
    const before = pods.get(id);
    const patch = before === null ? null : decide(before);
    return before === null || patch === null ? null : write(before, { ...before, ...patch });
  }

  return {
    /** Null when there is none, or none that can be read: a corrupt row is nobody's to work on. */
    get: (id: string) => unlessCorrupt(() => pods.get(id)),
    isCorrupt: pods.isCorrupt,
    list: pods.list,
    countLive: pods.countLive,
    events: pods.events,
    transaction: <T>(body: () => T) => inTransaction(database, body),
    /** Inserts a row that is not there yet; inside a transaction of the caller's. */
    insert: (row: PodRow) => write(null, row),
    apply,
    /** `decide` gives the changes to the row as it is now, or null to leave it; null when nothing was written. */
    change: (id: string, decide: (row: PodRow) => PodPatch | null) =>
      inTransaction(database, () => apply(id, decide)),
    dropTombstones: pods.dropTombstones,
  };
}

function unlessCorrupt<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof ZodError) return null;
    throw error;
  }
}
