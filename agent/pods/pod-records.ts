/** The only writer of pod rows. Checks each transition and updates times, conditions and the event log. */
import { ZodError } from 'zod';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { type DatabaseSync, inTransaction } from '#shared/runtime/sqlite.ts';
import { mayMove } from './pod.state.ts';
import { createPodStore, type PodRow } from './pod.store.ts';
import { changeOf } from './pod-generations.ts';
import { conditionsOf } from './pod-row.ts';

type Managed = 'id' | 'phase_since_ms' | 'conditions_json' | 'created_ms' | 'updated_ms';
export type PodPatch = Partial<Omit<PodRow, Managed>>;

export type PodRecords = ReturnType<typeof createPodRecords>;

/**
 * Creates the only writer of pod rows. There is no await between a read and its write, so concurrent callers cannot
 * overwrite each other.
 */
export function createPodRecords(ports: {
  database: DatabaseSync;
  clock: Clock;
  /** Called after each write of a row, inside the transaction. */
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

  /** Call inside a transaction. */
  function apply(id: string, decide: (row: PodRow) => PodPatch | null): PodRow | null {
    const before = pods.get(id);
    const patch = before === null ? null : decide(before);
    return before === null || patch === null ? null : write(before, { ...before, ...patch });
  }

  return {
    /** Null if there is no row or the row is corrupt. */
    get: (id: string) => unlessCorrupt(() => pods.get(id)),
    isCorrupt: pods.isCorrupt,
    list: pods.list,
    /** Rows of pods that are not removed, oldest first. */
    live: () => pods.list().filter(({ phase }) => phase !== 'removed'),
    countLive: pods.countLive,
    events: pods.events,
    transaction: <T>(body: () => T) => inTransaction(database, body),
    /** Inserts a new row. Call inside a transaction. */
    insert: (row: PodRow) => write(null, row),
    apply,
    /** Applies the patch that `decide` returns for the current row. Returns null if nothing was written. */
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

export type Condition = PodView['conditions'][number];

/** Derives the conditions of `row`. A condition whose status did not change keeps its transition time. */
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
