/** Counts what there is and what waits, so that a scrape never asks the database. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { BackupFill, EmbeddedBackups } from '../../backups/storage/backup-storage.ts';
import type { Db } from '../database/tables.ts';
import {
  type Counted,
  countExecutors,
  countMails,
  countPods,
  countRepositories,
  countSlots,
  dueWorkWaiting,
  mailsWaiting,
  syncTurnsWaiting,
  type Waiting,
} from './backlog.store.ts';

/** Some of it reads whole tables. */
export const BACKLOG_INTERVAL_MS = 30_000;

export type Backlog = {
  /** Monotonic. */
  atMs: number;
  pods: readonly Counted[];
  executors: readonly Counted[];
  slots: { total: number; free: number };
  mails: readonly Counted[];
  /** By the kind of work. */
  waiting: readonly (Waiting & { kind: string })[];
  /** Work of the schedule that failed when it was last tried. */
  failing: readonly { kind: string; count: number }[];
  repositories: number;
  /** Null where no repository lies in a folder of ours, or its disk does not answer. */
  backupFill: BackupFill | null;
  /** Wall clock of the count: what ages of work are told by. */
  nowMs: number;
};

/** The storage of backups on this machine's disk; null where they lie elsewhere. */
export type BackupsToCount = Pick<EmbeddedBackups, 'fill'> | null;

/** Of one moment, as far as one query after the other is one. */
export async function readBacklog(
  db: Db,
  clock: Clock,
  backups: BackupsToCount = null,
): Promise<Backlog> {
  const nowMs = clock.now();
  const due = await dueWorkWaiting(db, nowMs);
  return {
    ...{ nowMs, atMs: clock.monotonicMs() },
    pods: await countPods(db),
    executors: await countExecutors(db),
    slots: await countSlots(db),
    mails: await countMails(db),
    waiting: [
      { kind: 'pod_sync', ...(await syncTurnsWaiting(db, nowMs)) },
      { kind: 'mail', ...(await mailsWaiting(db, nowMs)) },
      ...due.map(({ kind, count, oldestMs }) => ({ kind, count, oldestMs })),
    ],
    failing: due.map(({ kind, failing }) => ({ kind, count: failing })),
    repositories: await countRepositories(db),
    backupFill: (await backups?.fill().catch(() => null)) ?? null,
  };
}

/** Counts now and then until it is stopped. */
export function startBacklog(
  metrics: { setBacklog(backlog: Backlog): void },
  { db, clock, log, backups }: { db: Db; clock: Clock; log: Log; backups: BackupsToCount },
): Loop {
  return startLoop({
    clock,
    intervalMs: BACKLOG_INTERVAL_MS,
    run: async () => metrics.setBacklog(await readBacklog(db, clock, backups)),
    onError: (error) => log.error({ err: error }, 'the backlog could not be counted'),
  });
}
