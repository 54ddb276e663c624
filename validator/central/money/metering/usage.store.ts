/** Queries on usage segments and meters. */
import { type Selectable, sql } from 'kysely';
import { CREATION_STATES } from '../../market/pods/pod.state.ts';
import {
  idsJson,
  insertOne,
  isAmong,
  jsonRows,
  prepared,
  type Slots,
} from '../../platform/database/prepared.ts';
import type {
  UsageMetersTable,
  UsageSegmentsTable,
} from '../../platform/database/tables/metering.ts';
import type { Db } from '../../platform/database/tables.ts';

export type Meter = Selectable<UsageMetersTable>;
export type SegmentRow = Selectable<UsageSegmentsTable>;

type OfPod = Slots<{ podId: string }>;

const byPod = prepared((db, { podId }: OfPod) =>
  db.selectFrom('usage_meters').selectAll().where('pod_id', '=', podId),
);

/** Returns undefined for a pod that never ran. */
export async function findMeter(db: Db, podId: string): Promise<Meter | undefined> {
  return (await byPod(db, { podId })).rows[0];
}

const subject = prepared((db, { podId }: OfPod) =>
  db
    .selectFrom('pods')
    .innerJoin('executors', 'executors.id', 'pods.executor_id')
    .select([
      'pods.account_id',
      'pods.executor_id',
      'executors.provider_id',
      'pods.price_uusd_per_gpu_hour',
      'pods.gpu_count',
      'pods.hold_id',
    ])
    .where('pods.id', '=', podId),
);

/** Returns the values that a new meter copies from its pod. Throws if there is no such pod. */
export async function findMeteredPod(db: Db, podId: string) {
  const [row] = (await subject(db, { podId })).rows;
  if (row === undefined) throw new Error(`there is no pod ${podId} to meter`);
  return row;
}

const spendLimit = prepared((db, { podId }: OfPod) =>
  db.selectFrom('pods').select('max_spend_uusd').where('id', '=', podId),
);

/** Returns the pod's spend limit in micro-dollars; null: none. */
export async function spendLimitOf(db: Db, podId: string): Promise<number | null> {
  return (await spendLimit(db, { podId })).rows[0]?.max_spend_uusd ?? null;
}

export function insertMeter(db: Db, meter: Meter): Promise<void> {
  return insertOne(db, 'usage_meters', meter);
}

const setMeter = prepared((db, meter: Slots<Pick<Meter, keyof Meter>>) =>
  db
    .updateTable('usage_meters')
    .set({
      seq: meter.seq,
      state: meter.state,
      is_billable: meter.is_billable,
      since_ms: meter.since_ms,
      closed_uusd: meter.closed_uusd,
      closed_rest: meter.closed_rest,
      settled_to_ms: meter.settled_to_ms,
      hold_id: meter.hold_id,
      ended_at: meter.ended_at,
    })
    .where('pod_id', '=', meter.pod_id),
);

/** Updates a meter, except the amounts charged, which `writeSettlements` updates. */
export async function updateMeter(db: Db, meter: Meter): Promise<void> {
  await setMeter(db, meter);
}

/** Inserts a segment. The database rejects a segment that does not begin at the end of the previous segment. */
export function insertSegment(db: Db, segment: SegmentRow): Promise<void> {
  return insertOne(db, 'usage_segments', segment);
}

const close = prepared(
  (db, { podId, seq, toMs }: Slots<{ podId: string; seq: number; toMs: number }>) =>
    db
      .updateTable('usage_segments')
      .set({ to_ms: toMs })
      .where('pod_id', '=', podId)
      .where('seq', '=', seq)
      .where('to_ms', 'is', null),
);

export async function closeSegment(db: Db, podId: string, seq: number, toMs: number) {
  await close(db, { podId, seq, toMs });
}

/** Oldest first. */
export function listSegments(db: Db, podId: string, limit: number): Promise<SegmentRow[]> {
  return db
    .selectFrom('usage_segments')
    .selectAll()
    .where('pod_id', '=', podId)
    .orderBy('seq')
    .limit(limit)
    .execute();
}

/** Number, start and billable time of segments; `from_ms` is null if there are none. */
export type SegmentSum = { count: number; from_ms: number | null; billed_ms: number };

/** Sums the segments after the number `seq`. The open segment ends at `openEndMs`. */
export async function sumSegmentsAfter(
  db: Db,
  podId: string,
  { seq, openEndMs }: { seq: number; openEndMs: number },
): Promise<SegmentSum> {
  const row = await db
    .selectFrom('usage_segments')
    .select((eb) => [
      eb.fn.countAll<number>().as('count'),
      eb.fn.min<number | null>('from_ms').as('from_ms'),
      sql<
        number | null
      >`sum(case when is_billable = 1 and coalesce(to_ms, ${openEndMs}) > from_ms then coalesce(to_ms, ${openEndMs}) - from_ms else 0 end)`.as(
        'billed_ms',
      ),
    ])
    .where('pod_id', '=', podId)
    .where('seq', '>', seq)
    .executeTakeFirstOrThrow();
  return {
    count: Number(row.count),
    from_ms: row.from_ms === null ? null : Number(row.from_ms),
    billed_ms: Number(row.billed_ms ?? 0),
  };
}

/** Newest first. */
export function listLatestSegments(db: Db, podId: string, limit: number): Promise<SegmentRow[]> {
  return db
    .selectFrom('usage_segments')
    .selectAll()
    .where('pod_id', '=', podId)
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute();
}

/** Segments that end after `fromMs` or are open, oldest first. */
export function listSegmentsSince(db: Db, podId: string, fromMs: number): Promise<SegmentRow[]> {
  return db
    .selectFrom('usage_segments')
    .selectAll()
    .where('pod_id', '=', podId)
    .where((eb) => eb.or([eb('to_ms', 'is', null), eb('to_ms', '>', fromMs)]))
    .orderBy('seq')
    .execute();
}

const restarting = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db
    .selectFrom('pods')
    .innerJoin('usage_meters', 'usage_meters.pod_id', 'pods.id')
    .select(['usage_meters.price_uusd_per_gpu_hour', 'usage_meters.gpu_count'])
    .where('pods.account_id', '=', accountId)
    .where('pods.state', 'in', CREATION_STATES),
);

/** Prices of an account's pods that ran before, were stopped, and are now starting again. */
export async function listRestarting(
  db: Db,
  accountId: string,
): Promise<Pick<Meter, 'price_uusd_per_gpu_hour' | 'gpu_count'>[]> {
  return (await restarting(db, { accountId })).rows;
}

const changes = prepared((db, { rows }: Slots<{ rows: string }>) =>
  db
    .updateTable('usage_meters')
    .from(jsonRows(db, rows, { podId: 'text', endMs: 'bigint' }).as('input'))
    .set((eb) => ({ changed_ms: eb.ref('input.endMs') }))
    .whereRef('usage_meters.pod_id', '=', 'input.podId')
    .whereRef('usage_meters.changed_ms', '<', 'input.endMs'),
);

/**
 * Raises `changed_ms`, the instant until which a pod may have been used before its limit or the funds were reduced.
 * Never lowers it.
 */
export async function raiseChangedMs(
  tx: Db,
  ends: readonly { podId: string; endMs: number }[],
): Promise<void> {
  await changes(tx, { rows: JSON.stringify(ends) });
}

const metersOf = prepared((db, { podIds }: Slots<{ podIds: string }>) =>
  db
    .selectFrom('usage_meters')
    .selectAll()
    .where(isAmong(db, 'pod_id', podIds)),
);

/** Omits pods that never ran. */
export async function listMeters(db: Db, podIds: readonly string[]): Promise<Meter[]> {
  if (podIds.length === 0) return [];
  return (await metersOf(db, { podIds: idsJson(podIds) })).rows;
}
