/** Queries on usage segments and meters. */
import type { Selectable } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import { ACTIVE_STATES } from '../../market/notices/notice.state.ts';
import { CREATION_STATES } from '../../market/pods/pod.state.ts';
import { insertOne, jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type {
  UsageMetersTable,
  UsageSegmentsTable,
} from '../../platform/database/tables/metering.ts';
import type { Db } from '../../platform/database/tables.ts';

export type Meter = Selectable<UsageMetersTable>;
export type SegmentRow = Selectable<UsageSegmentsTable>;

/** Ends of a pod's billable time that are stored outside its meter. */
export type MeterBounds = {
  seen_at: number | null;
  removal_at: number | null;
  /** Time at which the pod's node is removed permanently, according to a notice in force. */
  leaves_at: number | null;
  max_spend_uusd: number | null;
  /** Time at which the pod is stopped because it is idle, unless it is used before. */
  idle_stop_at: number | null;
  /** Time at which a budget of the API key that rented the pod is used up. */
  key_stops_at: number | null;
};

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

const burning = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db
    .selectFrom('usage_meters')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('is_billable', '=', 1)
    .orderBy('pod_id'),
);

/** The account's billable meters. */
export async function listBurning(db: Db, accountId: string): Promise<Meter[]> {
  return (await burning(db, { accountId })).rows;
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

/**
 * Locks up to `limit` accounts after `cursor` that have a billable meter last settled at or before `untilMs`. Skips
 * accounts that another process has locked. The returned cursor is null after the last account.
 */
export async function claimDueAccounts(
  tx: Db,
  { untilMs, cursor, limit }: { untilMs: number; cursor: string; limit: number },
): Promise<{ claimed: string[]; cursor: string | null }> {
  const due = await tx
    .selectFrom('usage_meters')
    .select('account_id')
    .distinct()
    .where('is_billable', '=', 1)
    .where('settled_to_ms', '<=', untilMs)
    .where('account_id', '>', cursor)
    .orderBy('account_id')
    .limit(limit)
    .execute();
  const ids = due.map(({ account_id }) => account_id);
  const last = ids.length < limit ? null : (ids.at(-1) ?? null);
  if (!isPostgres(tx) || ids.length === 0) return { claimed: ids, cursor: last };
  const locked = await tx
    .selectFrom('accounts')
    .select('id')
    .where('id', 'in', ids)
    .orderBy('id')
    .forNoKeyUpdate()
    .skipLocked()
    .execute();
  return { claimed: locked.map(({ id }) => id), cursor: last };
}

const burningOf = prepared((db, { rows }: Slots<{ rows: string }>) =>
  db
    .selectFrom('usage_meters')
    .innerJoin('pods', 'pods.id', 'usage_meters.pod_id')
    .selectAll('usage_meters')
    .select(['pods.seen_at', 'pods.removal_at', 'pods.max_spend_uusd', 'pods.idle_stop_at'])
    .select((eb) =>
      eb
        .selectFrom('notices')
        .select('start_at')
        .whereRef('notices.executor_id', '=', 'pods.executor_id')
        .where('permanent', '=', 1)
        .where('state', 'in', ACTIVE_STATES)
        .as('leaves_at'),
    )
    .select((eb) =>
      eb
        .selectFrom('api_key_budgets')
        .select('stops_at')
        .whereRef('api_key_budgets.api_key_id', '=', 'pods.created_by_api_key_id')
        .as('key_stops_at'),
    )
    .where('usage_meters.is_billable', '=', 1)
    .where('usage_meters.account_id', 'in', (eb) =>
      eb.selectFrom(jsonRows(db, rows, { id: 'text' }).as('input')).select('id'),
    )
    .orderBy('usage_meters.account_id')
    .orderBy('usage_meters.pod_id'),
);

/** Billable meters of these accounts with the ends of their time, ordered by account. */
export async function listBurningOf(
  db: Db,
  accountIds: readonly string[],
): Promise<(Meter & MeterBounds)[]> {
  const rows = JSON.stringify(accountIds.map((id) => ({ id })));
  return (await burningOf(db, { rows })).rows;
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

/** Omits pods that never ran. */
export async function listMeters(db: Db, podIds: readonly string[]): Promise<Meter[]> {
  if (podIds.length === 0) return [];
  return db.selectFrom('usage_meters').selectAll().where('pod_id', 'in', podIds).execute();
}
