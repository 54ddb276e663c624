/** Read-only counts of rows and of waiting work, for metrics. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Db } from '../database/tables.ts';

export type Counted = { state: string; count: number };
/**
 * Number of due rows. `oldestMs` is the due time of the oldest one in milliseconds since the epoch; null if none is
 * due.
 */
export type Waiting = { count: number; oldestMs: number | null };

/** Counts pods that have not ended, by state. */
export function countPods(db: Db): Promise<Counted[]> {
  return db
    .selectFrom('pods')
    .select((eb) => ['state', eb.fn.countAll<number>().as('count')])
    .where('ended_at', 'is', null)
    .groupBy('state')
    .execute();
}

/** Executors in a state, and their GPUs. */
export type CountedExecutors = Counted & { gpus: number; free: number };

/** Counts executors that have not been removed, and their GPUs, by state. Reads the whole table, so only once. */
export async function countExecutors(db: Db): Promise<CountedExecutors[]> {
  const rows = await db
    .selectFrom('executors')
    .select((eb) => [
      'state',
      eb.fn.countAll<number>().as('count'),
      eb.fn.sum<number>('slots_total').as('gpus'),
      eb.fn.sum<number>('slots_free').as('free'),
    ])
    .where('removed_at', 'is', null)
    .groupBy('state')
    .execute();
  return rows.map((row) => ({ ...row, gpus: Number(row.gpus), free: Number(row.free) }));
}

/** Counts mails by state. Sent mails are deleted after a week. */
export function countMails(db: Db): Promise<Counted[]> {
  return db
    .selectFrom('mails')
    .select((eb) => ['state', eb.fn.countAll<number>().as('count')])
    .groupBy('state')
    .execute();
}

export function mailsWaiting(db: Db, nowMs: number): Promise<Waiting> {
  return waiting(
    db
      .selectFrom('mails')
      .select((eb) => [eb.fn.countAll<number>().as('count'), eb.fn.min('due_at').as('oldestMs')])
      .where('state', '=', 'waiting')
      .where('due_at', '<=', nowMs)
      .executeTakeFirst(),
  );
}

/** Counts executors that are due for a sync and that no process is syncing. Does not read entries that are not due. */
export async function syncTurnsWaiting(db: Db, nowMs: number): Promise<Waiting> {
  const answering = await syncTurnsDue(db, sql<SqlBool>`failures = 0`, nowMs);
  const failing = await syncTurnsDue(db, sql<SqlBool>`failures > 0`, nowMs);
  const times = [answering, failing].flatMap(({ oldestMs }) => oldestMs ?? []);
  return {
    count: answering.count + failing.count,
    oldestMs: times.length === 0 ? null : Math.min(...times),
  };
}

/** The conditions are those of the indexes of 0059-sync-queue.ts. */
function syncTurnsDue(db: Db, answers: RawBuilder<SqlBool>, nowMs: number): Promise<Waiting> {
  return waiting(
    db
      .selectFrom('sync_turns')
      .select((eb) => [eb.fn.countAll<number>().as('count'), eb.fn.min('due_at').as('oldestMs')])
      .where(answers)
      .where(sql<SqlBool>`woken in (0, 1)`)
      .where('due_at', '<=', nowMs)
      .where('boot_id', 'is', null)
      .executeTakeFirst(),
  );
}

/** Counts due work of the schedule by kind, and scheduled work whose last attempt failed. */
export async function dueWorkWaiting(
  db: Db,
  nowMs: number,
): Promise<(Waiting & { kind: string; failing: number })[]> {
  return db
    .selectFrom('due_work')
    .select((eb) => [
      'kind',
      eb.fn.countAll<number>().as('count'),
      eb.fn.min('due_at').as('oldestMs'),
      eb.fn.countAll<number>().filterWhere('attempts', '>', 0).as('failing'),
    ])
    .where('due_at', '<=', nowMs)
    .groupBy('kind')
    .orderBy('kind')
    .execute();
}

/** Counts backup repositories that have not been removed. */
export async function countRepositories(db: Db): Promise<number> {
  const found = await db
    .selectFrom('backup_repositories')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return found?.count ?? 0;
}

async function waiting(
  found: Promise<{ count: number; oldestMs: number | null } | undefined>,
): Promise<Waiting> {
  return (await found) ?? { count: 0, oldestMs: null };
}
