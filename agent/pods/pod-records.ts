/** The only writer of pod rows: checks each move, keeps times, conditions and the event log in step. */
import { ZodError } from 'zod';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { type DatabaseSync, inTransaction } from '#shared/runtime/sqlite.ts';
import { mayMove } from './pod.state.ts';
import { createPodStore, type PodRow } from './pod.store.ts';
import { changeOf } from './pod-generations.ts';
import { conditionsOf } from './pod-row.ts';

type Kept = 'id' | 'phase_since_ms' | 'conditions_json' | 'created_ms' | 'updated_ms';
export type PodPatch = Partial<Omit<PodRow, Kept>>;

export type PodRecords = ReturnType<typeof createPodRecords>;

/** Reads and writes happen without an await in between, so nobody can change a row under the other's hands. */
export function createPodRecords(ports: {
  database: DatabaseSync;
  clock: Clock;
  /** Called with every row written, inside the transaction. */
  onWrite(): void;
}) {
  const { database, clock } = ports;
  const pods = createPodStore(database);

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
    /** Rows of pods that are not removed, oldest first. */
    live: () => pods.list().filter(({ phase }) => phase !== 'removed'),
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

// MERGED agent/pods/pod-records.ts: What is in place for a pod, derived from its row (agent reference 4). Pure.
export type Condition = PodView['conditions'][number];

/** The conditions of `row`; one whose status is as in `before` keeps its time. */
export function deriveConditions(row: PodRow, before: readonly Condition[]): Condition[] {
  const alive = row.phase !== 'removed';
  const change = changeOf(row);
  const facts: [Condition['type'], boolean][] = [
    ['ImageReady', alive && row.image_id !== null],
    ['NetworkReady', alive && row.container_id !== null],
    ['PortsBound', row.phase === 'running'],
    ['GpuLeased', alive],
    ['Running', row.phase === 'running'],
    ['GenerationReady', row.phase === 'running' && change === null],
  ];
  return facts.map(([type, status]) => {
    const old = before.find((condition) => condition.type === type);
    const cause = type === 'GenerationReady' ? (change ?? row) : row;
    return {
      type,
      status,
      reason: status ? 'Ok' : (cause.reason ?? 'NotYet'),
      message: status ? '' : cause.message,
      last_transition_ms: old?.status === status ? old.last_transition_ms : row.updated_ms,
    };
  });
}
