/** Counts rows and due work at intervals. Scrapes read the metrics from memory. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { type Family, type Sample, unlabelled } from '#shared/telemetry/family.ts';
import type { Db } from '../database/tables.ts';
import {
  type Counted,
  type CountedExecutors,
  countExecutors,
  countMails,
  countPods,
  countRepositories,
  dueWorkWaiting,
  mailsWaiting,
  syncTurnsWaiting,
  type Waiting,
} from './backlog.store.ts';

/** The interval is long, because some of the counts read whole tables. */
export const BACKLOG_INTERVAL_MS = 30_000;

export type Backlog = {
  /** Time of the count on the monotonic clock. */
  atMs: number;
  pods: readonly Counted[];
  executors: readonly CountedExecutors[];
  mails: readonly Counted[];
  /** Due work by kind. */
  waiting: readonly (Waiting & { kind: string })[];
  /** Scheduled work whose last attempt failed, by kind. */
  failing: readonly { kind: string; count: number }[];
  repositories: number;
  /** Null if backups are stored elsewhere, or if the disk cannot be read. */
  backupFill: BackupFill | null;
  /** Time of the count by the wall clock, from which ages are computed. */
  nowMs: number;
};

/**
 * `bytes` is the size of all repositories; null before the first count. `totalBytes` and `freeBytes` are the size and
 * the free space of the disk that stores the repositories.
 */
export type BackupFill = { bytes: number | null; totalBytes: number; freeBytes: number };

/** Storage of backups on this host's disk; null if backups are stored elsewhere. */
export type BackupsToCount = { fill(): Promise<BackupFill> } | null;

/** Reads the backlog. The queries run one after the other and do not share a snapshot. */
export async function readBacklog(
  db: Db,
  clock: Clock,
  backups: BackupsToCount = null,
): Promise<Backlog> {
  const nowMs = clock.now();
  const due = await dueWorkWaiting(db, nowMs);
  return {
    nowMs,
    atMs: clock.monotonicMs(),
    pods: await countPods(db),
    executors: await countExecutors(db),
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

/** Counts every BACKLOG_INTERVAL_MS until it is stopped. */
export function startBacklog(
  metrics: { setBacklog(backlog: Backlog): void },
  { db, clock, log, backups }: { db: Db; clock: Clock; log: Log; backups: BackupsToCount },
): Loop {
  return startLoop({
    clock,
    intervalMs: BACKLOG_INTERVAL_MS,
    run: async () => metrics.setBacklog(await readBacklog(db, clock, backups)),
    onError: (error) => log.error({ err: error }, 'counting the backlog failed'),
  });
}

export const CENTRAL_PREFIX = 'podwright_central_';
const MS_PER_SECOND = 1_000;

type Row = readonly [string, string, Family['labels'], (now: Backlog) => Sample[]];

const byState = (counted: Backlog['pods']): Sample[] =>
  counted.map(({ state, count }) => ({ labels: { state }, value: count }));

const verifiedIn = ({ executors }: Backlog) => executors.find(({ state }) => state === 'verified');

const ROWS: readonly Row[] = [
  ['pods', 'Pods that have not ended, by state.', ['state'], ({ pods }) => byState(pods)],
  ['executors', 'Nodes by state.', ['state'], ({ executors }) => byState(executors)],
  ['gpus', 'GPUs of verified nodes.', [], (now) => unlabelled(verifiedIn(now)?.gpus ?? 0)],
  [
    'gpus_free',
    'GPUs of verified nodes that are not assigned to a pod.',
    [],
    (now) => unlabelled(verifiedIn(now)?.free ?? 0),
  ],
  ['mails', 'Mails in the database, by state.', ['state'], ({ mails }) => byState(mails)],
  [
    'jobs_due',
    'Work that is due, by kind.',
    ['kind'],
    ({ waiting }) => waiting.map(({ kind, count }) => ({ labels: { kind }, value: count })),
  ],
  [
    'jobs_oldest_due_seconds',
    'Seconds since the oldest due work became due, by kind; 0 if none is due.',
    ['kind'],
    ({ waiting, nowMs }) =>
      waiting.map(({ kind, oldestMs }) => ({
        labels: { kind },
        value: Math.max(0, nowMs - (oldestMs ?? nowMs)) / MS_PER_SECOND,
      })),
  ],
  [
    'jobs_failing',
    'Scheduled work whose last attempt failed, by kind.',
    ['kind'],
    ({ failing }) => failing.map(({ kind, count }) => ({ labels: { kind }, value: count })),
  ],
  [
    'backup_repositories',
    'Backup repositories that have not been removed.',
    [],
    ({ repositories }) => unlabelled(repositories),
  ],
  [
    'backup_storage_bytes',
    'Bytes of backups and volumes in the folder of this process, as of the last hourly count.',
    [],
    ({ backupFill }) => unlabelled(backupFill?.bytes),
  ],
  [
    'backup_storage_disk_size_bytes',
    'Size of the disk that stores backups and volumes.',
    [],
    ({ backupFill }) => unlabelled(backupFill?.totalBytes),
  ],
  [
    'backup_storage_disk_free_bytes',
    'Free bytes on the disk that stores backups and volumes.',
    [],
    ({ backupFill }) => unlabelled(backupFill?.freeBytes),
  ],
];

/** Returns the metrics. `backlog` returns null if the last count is too old; then the metrics have no samples. */
export function backlogFamilies(backlog: () => Backlog | null): Family[] {
  return ROWS.map(([name, help, labels, samplesOf]) => ({
    name: CENTRAL_PREFIX + name,
    help,
    type: 'gauge',
    labels,
    samples() {
      const now = backlog();
      return now === null ? [] : samplesOf(now);
    },
  }));
}
