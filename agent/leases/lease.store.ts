/** Queries on the table leases: exclusive rights of pods to GPUs, host ports and subnets. */
import { z } from 'zod';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

const LEASE_KINDS = ['gpu', 'port', 'subnet'] as const;
export type LeaseKind = (typeof LEASE_KINDS)[number];

/** One row of `leases`. */
export const Lease = z.object({
  kind: z.enum(LEASE_KINDS),
  key: z.string(),
  pod_id: z.string(),
  state: z.enum(['held', 'cooling', 'dirty']),
  until_ms: z.int(),
  slot: z.string(),
  /** Time after the release during which the key cannot be leased again, ms; 0: the default of the lease's kind. */
  cooling_ms: z.int(),
});
export type Lease = z.output<typeof Lease>;

export type LeaseStore = ReturnType<typeof createLeaseStore>;

/** Creates the store of leases, in which UNIQUE(kind, key) prevents double leases. */
export function createLeaseStore(database: DatabaseSync) {
  const insert = database.prepare(
    `INSERT INTO leases (kind, key, pod_id, state, until_ms, slot, cooling_ms)
     VALUES (:kind, :key, :pod_id, 'held', 0, :slot, :cooling_ms)`,
  );
  const select = database.prepare('SELECT * FROM leases WHERE kind = :kind AND key = :key');
  const ofPod = database.prepare(
    `SELECT * FROM leases WHERE kind = :kind AND pod_id = :pod_id AND state = 'held'
     ORDER BY CAST(slot AS INTEGER), key`,
  );
  const ofKind = database.prepare('SELECT * FROM leases WHERE kind = :kind ORDER BY key');
  const setState = database.prepare(
    `UPDATE leases SET state = :state, until_ms = :until_ms
     WHERE kind = :kind AND key = :key AND pod_id = :pod_id`,
  );
  const setCooling = database.prepare(
    `UPDATE leases SET cooling_ms = :cooling_ms
     WHERE kind = :kind AND key = :key AND pod_id = :pod_id`,
  );
  const remove = database.prepare(
    'DELETE FROM leases WHERE kind = :kind AND key = :key AND pod_id = :pod_id',
  );
  const dropCooled = database.prepare(
    `DELETE FROM leases WHERE state = 'cooling' AND until_ms <= :now_ms`,
  );

  return {
    /** Inserts a lease. Throws by the table's constraint if the key is leased, cooling or dirty. */
    take(lease: {
      kind: LeaseKind;
      key: string;
      podId: string;
      slot: string;
      coolingMs?: number;
    }): void {
      const { kind, key, podId: pod_id, slot, coolingMs: cooling_ms = 0 } = lease;
      insert.run({ kind, key, pod_id, slot, cooling_ms });
    },
    get(kind: LeaseKind, key: string): Lease | null {
      const row = select.get({ kind, key });
      return row === undefined ? null : Lease.parse(row);
    },
    /** Held leases of a pod, ordered by slot. */
    heldBy: (kind: LeaseKind, podId: string): Lease[] =>
      ofPod.all({ kind, pod_id: podId }).map((row) => Lease.parse(row)),
    /** Leases in every state. */
    list: (kind: LeaseKind): Lease[] => ofKind.all({ kind }).map((row) => Lease.parse(row)),
    /** Does nothing if another pod has the lease. */
    setState(lease: Lease, state: Lease['state'], untilMs: number): void {
      const { kind, key, pod_id } = lease;
      setState.run({ kind, key, pod_id, state, until_ms: untilMs });
    },
    setCooling({ kind, key, pod_id }: Lease, coolingMs: number): void {
      setCooling.run({ kind, key, pod_id, cooling_ms: coolingMs });
    },
    remove({ kind, key, pod_id }: Lease): void {
      remove.run({ kind, key, pod_id });
    },
    dropCooled(nowMs: number): void {
      dropCooled.run({ now_ms: nowMs });
    },
  };
}
