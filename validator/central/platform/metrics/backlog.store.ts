/** How many of what there are, and what waits: read-only sums over the tables, for metrics. */
import type { Db } from '../database/tables.ts';

export type Counted = { state: string; count: number };
/** `oldestMs`: since when the first of them is due, milliseconds since the epoch; null where none is. */
export type Waiting = { count: number; oldestMs: number | null };

/** Pods that have not ended. */
export function countPods(db: Db): Promise<Counted[]> {
  return db
    .selectFrom('pods')
    .select((eb) => ['state', eb.fn.countAll<number>().as('count')])
    .where('ended_at', 'is', null)
    .groupBy('state')
    .execute();
}

/** Executors that were not taken away. */
export function countExecutors(db: Db): Promise<Counted[]> {
  return db
    .selectFrom('executors')
    .select((eb) => ['state', eb.fn.countAll<number>().as('count')])
    .where('removed_at', 'is', null)
    .groupBy('state')
    .execute();
}

/** GPUs of executors that may be rented, and those of them that no pod has. */
export async function countSlots(db: Db): Promise<{ total: number; free: number }> {
  const found = await db
    .selectFrom('executors')
    .select((eb) => [
      eb.fn.sum<number>('slots_total').as('total'),
      eb.fn.sum<number>('slots_free').as('free'),
    ])
    .where('state', '=', 'verified')
    .executeTakeFirst();
  return { total: Number(found?.total ?? 0), free: Number(found?.free ?? 0) };
}

/** Mails by state; those that were sent are forgotten after a while. */
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

/** Agents that are to be told something, or looked at. */
export function syncTurnsWaiting(db: Db, nowMs: number): Promise<Waiting> {
  return waiting(
    db
      .selectFrom('sync_turns')
      .select((eb) => [eb.fn.countAll<number>().as('count'), eb.fn.min('due_at').as('oldestMs')])
      .where('due_at', '<=', nowMs)
      .executeTakeFirst(),
  );
}

/** Of the schedule, by kind: what is due, and what of it failed when it was last tried. */
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

/** Repositories of backups that have not been removed. */
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
