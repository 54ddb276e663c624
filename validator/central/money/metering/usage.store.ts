/** All queries on segments of use and on meters. */
import type { Selectable } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import { STANDING_STATES } from '../../market/notices/notice.state.ts';
import { CREATION_STATES } from '../../market/pods/pod.state.ts';
import { insertOne, jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type {
  UsageMetersTable,
  UsageSegmentsTable,
} from '../../platform/database/tables/metering.ts';
import type { Db } from '../../platform/database/tables.ts';

export type Meter = Selectable<UsageMetersTable>;
export type SegmentRow = Selectable<UsageSegmentsTable>;

/** What bounds a pod's metered time beside its meter. */
export type MeterBounds = {
  seen_at: number | null;
  removal_at: number | null;
  /** When its node goes for good, by the notice that stands. */
  leaves_at: number | null;
  max_spend_uusd: number | null;
  /** When it stops for want of use, as things stand. */
  idle_stop_at: number | null;
};

type OfPod = Slots<{ podId: string }>;

const byPod = prepared((db, { podId }: OfPod) =>
  db.selectFrom('usage_meters').selectAll().where('pod_id', '=', podId),
);

/** Undefined for a pod that never ran. */
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

/** What a new meter takes from its pod. */
export async function meteredPod(db: Db, podId: string) {
  const [row] = (await subject(db, { podId })).rows;
  if (row === undefined) throw new Error(`there is no pod ${podId} to meter`);
  return row;
}

const cap = prepared((db, { podId }: OfPod) =>
  db.selectFrom('pods').select('max_spend_uusd').where('id', '=', podId),
);

/** What the pod may cost at most; null: as much as it takes. */
export async function capOf(db: Db, podId: string): Promise<number | null> {
  return (await cap(db, { podId })).rows[0]?.max_spend_uusd ?? null;
}

/** Stores a new meter. */
export function insertMeter(db: Db, meter: Meter): Promise<void> {
  return insertOne(db, 'usage_meters', meter);
}

const place = prepared((db, meter: Slots<Pick<Meter, keyof Meter>>) =>
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

/** Writes where a meter stands; what was charged is written with the charge (billing.store.ts). */
export async function placeMeter(db: Db, meter: Meter): Promise<void> {
  await place(db, meter);
}

/** Stores a segment that begins where the one before it ended. */
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

/** Ends the open segment. */
export async function closeSegment(db: Db, podId: string, seq: number, toMs: number) {
  await close(db, { podId, seq, toMs });
}

/** A pod's segments from the first on, `limit` at most. */
export function listSegments(db: Db, podId: string, limit: number): Promise<SegmentRow[]> {
  return db
    .selectFrom('usage_segments')
    .selectAll()
    .where('pod_id', '=', podId)
    .orderBy('seq')
    .limit(limit)
    .execute();
}

/** The last of them, that one first. */
export function listLatestSegments(db: Db, podId: string, limit: number): Promise<SegmentRow[]> {
  return db
    .selectFrom('usage_segments')
    .selectAll()
    .where('pod_id', '=', podId)
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute();
}

/** Those of them that reach beyond `fromMs`. */
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

/** The meters of an account that cost money now. */
export async function listBurning(db: Db, accountId: string): Promise<Meter[]> {
  return (await burning(db, { accountId })).rows;
}

const starting = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db
    .selectFrom('pods')
    .innerJoin('usage_meters', 'usage_meters.pod_id', 'pods.id')
    .select(['usage_meters.price_uusd_per_gpu_hour', 'usage_meters.gpu_count'])
    .where('pods.account_id', '=', accountId)
    .where('pods.state', 'in', CREATION_STATES),
);

/** What pods of an account will cost that ran before, stood still, and are on their way to run again. */
export async function listStartingAgain(
  db: Db,
  accountId: string,
): Promise<Pick<Meter, 'price_uusd_per_gpu_hour' | 'gpu_count'>[]> {
  return (await starting(db, { accountId })).rows;
}

/** Accounts after `cursor` with a meter that was last settled at or before `untilMs`, held until the transaction ends; those that another process holds are passed over. */
export async function takeAccounts(
  tx: Db,
  { untilMs, cursor, limit }: { untilMs: number; cursor: string; limit: number },
): Promise<{ taken: string[]; cursor: string | null }> {
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
  if (!isPostgres(tx) || ids.length === 0) return { taken: ids, cursor: last };
  const locked = await tx
    .selectFrom('accounts')
    .select('id')
    .where('id', 'in', ids)
    .orderBy('id')
    .forNoKeyUpdate()
    .skipLocked()
    .execute();
  return { taken: locked.map(({ id }) => id), cursor: last };
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
        .where('state', 'in', STANDING_STATES)
        .as('leaves_at'),
    )
    .where('usage_meters.is_billable', '=', 1)
    .where('usage_meters.account_id', 'in', (eb) =>
      eb.selectFrom(jsonRows(db, rows, { id: 'text' }).as('given')).select('id'),
    )
    .orderBy('usage_meters.account_id')
    .orderBy('usage_meters.pod_id'),
);

/** The meters of these accounts that cost money now, with what bounds them; by account. */
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
    .from(jsonRows(db, rows, { podId: 'text', endMs: 'bigint' }).as('given'))
    .set((eb) => ({ changed_ms: eb.ref('given.endMs') }))
    .whereRef('usage_meters.pod_id', '=', 'given.podId')
    .whereRef('usage_meters.changed_ms', '<', 'given.endMs'),
);

/** Notes up to when pods may have been used before a limit or their account's funds were lowered. */
export async function placeChanges(
  tx: Db,
  ends: readonly { podId: string; endMs: number }[],
): Promise<void> {
  await changes(tx, { rows: JSON.stringify(ends) });
}

/** What each of these pods was charged and given back; absent: never ran. */
export async function listMeters(db: Db, podIds: readonly string[]): Promise<Meter[]> {
  if (podIds.length === 0) return [];
  return db.selectFrom('usage_meters').selectAll().where('pod_id', 'in', podIds).execute();
}
