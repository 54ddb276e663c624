/** Queries on sync_turns, the queue of executors that the pod sync of all processes polls. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import {
  idsJson,
  isAmong,
  isAmongJoined,
  jsonRows,
  prepared,
  type Slots,
} from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockFreeRows } from '../../platform/database/transactions.ts';

/**
 * Time for which executors stay in the queue after their last pod ended, because a launch whose answer was lost may
 * still arrive.
 */
export const WATCH_ENDED_MS = 600_000;

/** An executor that a process is syncing. */
export type Claim = {
  executorId: string;
  /** Consecutive passes without an answer. */
  failures: number;
};

/** End of a claim. The executor is due again after `pauseMs`, or at once if it was woken during the claim. */
export type Release = Claim & {
  pauseMs: number;
  /** True if the pass found neither pods nor volumes of the executor. */
  isEmpty: boolean;
};

/** A part of the queue, which has its own order in an index. */
export type Lane = { woken: 0 | 1; failing: boolean };

const LANES: readonly Lane[] = [false, true].flatMap((failing) => [
  { failing, woken: 1 },
  { failing, woken: 0 },
]);

const enter = prepared((db, { executorId, nowMs }: Slots<{ executorId: string; nowMs: number }>) =>
  db
    .insertInto('sync_turns')
    .values({ executor_id: executorId, due_at: nowMs, failures: 0, woken: 1 })
    .onConflict((conflict) => conflict.column('executor_id').doUpdateSet(awakened(nowMs))),
);

/**
 * Adds an executor that received a pod or a volume, due at once. Call it in the transaction that writes the pod or the
 * volume.
 */
export async function enterQueue(tx: Db, executorId: string, nowMs: number): Promise<void> {
  await enter(tx, { executorId, nowMs });
}

const awaken = prepared((db, { ids, nowMs }: Slots<{ ids: string; nowMs: number }>) =>
  db
    .updateTable('sync_turns')
    .set(awakened(nowMs))
    .where(isAmong(db, 'executor_id', ids)),
);

/** Makes the executors due at once, whether or not they are claimed. Executors outside the queue stay outside. */
export async function wakeEntries(tx: Db, ids: readonly string[], nowMs: number): Promise<void> {
  if (ids.length > 0) await awaken(tx, { ids: idsJson(ids), nowMs });
}

/**
 * Locks the entries that no other transaction has locked, and returns the ids of the others. Executors outside the queue
 * are in neither group.
 */
export async function lockedAmong(tx: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const free = await lockFreeRows(tx, 'sync_turns', ids);
  const others = ids.filter((id) => !free.has(id));
  if (others.length === 0) return new Set();
  const rows = await tx
    .selectFrom('sync_turns')
    .select('executor_id')
    .where(isAmong(tx, 'executor_id', sql`${idsJson(others)}`))
    .execute();
  return new Set(rows.map((row) => row.executor_id));
}

/** An entry that is due already keeps its time, from which its delay is measured. */
function awakened(nowMs: RawBuilder<number>) {
  const at = sql`cast(${nowMs} as bigint)`;
  const due = sql.ref('sync_turns.due_at');
  return {
    woken: 1 as const,
    empty_since: null,
    due_at: sql<number>`case when ${due} < ${at} then ${due} else ${at} end`,
  };
}

export type DueFilter = Lane & {
  /** Latest due time. */
  untilMs: number;
  /** Boot ids of other live processes, whose claims remain valid. */
  others: readonly string[];
  /** Executors that this process has claimed. */
  running: readonly string[];
  limit: number;
};

type DueValues = { untilMs: number; running: string; others: string; limit: number };

const dueIn = (lane: Lane) =>
  prepared((db, { untilMs, running, others, limit }: Slots<DueValues>) =>
    db
      .selectFrom('sync_turns')
      .select(['executor_id', 'failures'])
      .where(isInLane(lane))
      .where('due_at', '<=', untilMs)
      .where((eb) => eb.not(isAmong(db, 'executor_id', running)))
      .where((eb) => eb.or([eb('boot_id', 'is', null), eb.not(isAmong(db, 'boot_id', others))]))
      .orderBy('due_at')
      .limit(limit)
      .$if(isPostgres(db), (query) => query.forUpdate().skipLocked()),
  );

const lanesDue = prepared((db, { untilMs }: Slots<{ untilMs: number }>) =>
  db.selectNoFrom((eb) =>
    LANES.map((lane) =>
      eb
        .exists(
          eb
            .selectFrom('sync_turns')
            .select('due_at')
            .where(isInLane(lane))
            .where('due_at', '<=', untilMs),
        )
        .as(laneKey(lane)),
    ),
  ),
);

/** Returns the lanes with executors that are due, claimed or not. Most lanes have none at a poll. */
export async function listDueLanes(tx: Db, untilMs: number): Promise<readonly Lane[]> {
  const [due] = (await lanesDue(tx, { untilMs })).rows;
  return due === undefined ? [] : LANES.filter((lane) => Boolean(due[laneKey(lane)]));
}

/**
 * Returns due executors of a lane that are not claimed, those due first at the front. Rows that another transaction has
 * locked are skipped.
 */
export async function listDueEntries(tx: Db, filter: DueFilter): Promise<Claim[]> {
  const { untilMs, others, running, limit } = filter;
  if (limit <= 0) return [];
  const { rows } = await QUERIES[laneKey(filter)](tx, {
    untilMs,
    running: idsJson(running),
    others: idsJson(others),
    limit,
  });
  return rows.map((row) => ({ executorId: row.executor_id, failures: row.failures }));
}

/** Literals, because the engines use a partial index only for a condition that they can compare with the index's. */
function isInLane({ woken, failing }: Lane) {
  const reached = failing ? sql`failures > 0` : sql`failures = 0`;
  return sql<SqlBool>`woken = ${sql.lit(woken)} and ${reached}`;
}

const laneKey = ({ woken, failing }: Lane) =>
  `${failing ? 'failing' : 'answering'}${woken}` as const;

const QUERIES = {
  answering0: dueIn({ woken: 0, failing: false }),
  answering1: dueIn({ woken: 1, failing: false }),
  failing0: dueIn({ woken: 0, failing: true }),
  failing1: dueIn({ woken: 1, failing: true }),
};

const claim = prepared((db, { ids, bootId }: Slots<{ ids: string; bootId: string }>) =>
  db
    .updateTable('sync_turns')
    .set({ boot_id: bootId, woken: 0 })
    .where(isAmong(db, 'executor_id', ids)),
);

/** Claims the executors for this process. */
export async function claimEntries(tx: Db, ids: readonly string[], bootId: string): Promise<void> {
  if (ids.length > 0) await claim(tx, { ids: idsJson(ids), bootId });
}

type ReleaseValues = { rows: string; ids: string; nowMs: number; bootId: string };

const RELEASED = { id: 'text', next_at: 'bigint', failed: 'bigint', is_empty: 'bigint' } as const;

const release = prepared((db, { rows, ids, nowMs, bootId }: Slots<ReleaseValues>) => {
  const at = sql`cast(${nowMs} as bigint)`;
  return db
    .updateTable('sync_turns')
    .from(jsonRows(db, rows, RELEASED).as('released'))
    .set({
      boot_id: null,
      failures: sql<number>`released.failed`,
      due_at: sql<number>`case when woken = 1 then ${at} else released.next_at end`,
      empty_since: sql<
        number | null
      >`case when woken = 1 or released.is_empty = 0 then null else coalesce(empty_since, ${at}) end`,
    })
    .where(isAmongJoined(db, 'sync_turns.executor_id', ids))
    .whereRef('sync_turns.executor_id', '=', 'released.id')
    .where('boot_id', '=', bootId);
});

const leave = prepared((db, { ids, untilMs }: Slots<{ ids: string; untilMs: number }>) =>
  db
    .deleteFrom('sync_turns')
    .where(isAmong(db, 'executor_id', ids))
    .where('boot_id', 'is', null)
    .where('empty_since', '<=', untilMs),
);

/**
 * Releases claims of this process, except those that another process has taken over. Removes executors that have been
 * empty for WATCH_ENDED_MS, unless they were woken meanwhile.
 */
export async function releaseEntries(
  tx: Db,
  releases: readonly Release[],
  { bootId, nowMs }: { bootId: string; nowMs: number },
): Promise<void> {
  if (releases.length === 0) return;
  const given = releases.map(({ executorId, pauseMs, failures, isEmpty }) => ({
    id: executorId,
    next_at: nowMs + pauseMs,
    failed: failures,
    is_empty: isEmpty ? 1 : 0,
  }));
  const ids = idsJson(given.map(({ id }) => id));
  await release(tx, { rows: JSON.stringify(given), ids, nowMs, bootId });
  const empty = releases.filter(({ isEmpty }) => isEmpty).map(({ executorId }) => executorId);
  if (empty.length === 0) return;
  await leave(tx, { ids: idsJson(empty), untilMs: nowMs - WATCH_ENDED_MS });
}

const earliest = prepared((db, _: Slots<Record<string, never>>) =>
  db.selectNoFrom((eb) =>
    LANES.map((lane) =>
      eb
        .selectFrom('sync_turns')
        .select('due_at')
        .where(isInLane(lane))
        .where('boot_id', 'is', null)
        .orderBy('due_at')
        .limit(1)
        .as(laneKey(lane)),
    ),
  ),
);

/** Returns the due time of the first entry that is not claimed, also in the future; null if there is none. */
export async function earliestDueMs(db: Db): Promise<number | null> {
  const [first] = (await earliest(db, {})).rows;
  const times = Object.values(first ?? {}).filter((ms) => ms !== null);
  return times.length === 0 ? null : Math.min(...times);
}

/** Makes entries that are due after `latestMs` due now. A clock that was set back leaves such entries behind. */
export async function pullInEntries(db: Db, latestMs: number, nowMs: number): Promise<void> {
  for (const lane of LANES) {
    await db
      .updateTable('sync_turns')
      .set({ due_at: nowMs })
      .where(isInLane(lane))
      .where('due_at', '>', latestMs)
      .execute();
  }
}
