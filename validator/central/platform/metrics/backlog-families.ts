/** The counts of the backlog as metrics; what was counted too long ago is absent. */
import { type Family, type Sample, single } from '#shared/telemetry/family.ts';
import type { Backlog } from './backlog.job.ts';

export const CENTRAL_PREFIX = 'podwright_central_';
const MS_PER_SECOND = 1_000;

type Row = readonly [string, string, Family['labels'], (now: Backlog) => Sample[]];

const byState = (counted: Backlog['pods']): Sample[] =>
  counted.map(({ state, count }) => ({ labels: { state }, value: count }));

const ROWS: readonly Row[] = [
  ['pods', 'Pods that have not ended, by state.', ['state'], ({ pods }) => byState(pods)],
  ['executors', 'Nodes by state.', ['state'], ({ executors }) => byState(executors)],
  ['gpus', 'GPUs of verified nodes.', [], ({ slots }) => single(slots.total)],
  ['gpus_free', 'Those of them that no pod has.', [], ({ slots }) => single(slots.free)],
  ['mails', 'Mails that are kept, by state.', ['state'], ({ mails }) => byState(mails)],
  [
    'jobs_due',
    'Work that is due, by kind.',
    ['kind'],
    ({ waiting }) => waiting.map(({ kind, count }) => ({ labels: { kind }, value: count })),
  ],
  [
    'jobs_oldest_due_seconds',
    'Since when the first of it is due.',
    ['kind'],
    ({ waiting, nowMs }) =>
      waiting.flatMap(({ kind, oldestMs }) =>
        oldestMs === null
          ? []
          : [{ labels: { kind }, value: Math.max(0, nowMs - oldestMs) / MS_PER_SECOND }],
      ),
  ],
  [
    'jobs_failing',
    'Work of the schedule that failed when it was last tried, by kind.',
    ['kind'],
    ({ failing }) => failing.map(({ kind, count }) => ({ labels: { kind }, value: count })),
  ],
  [
    'backup_repositories',
    'Repositories of backups and volumes that were not removed.',
    [],
    ({ repositories }) => single(repositories),
  ],
  [
    'backup_storage_bytes',
    'What backups and volumes take in the folder of this process, as of the last hourly count.',
    [],
    ({ backupFill }) => single(backupFill?.bytes),
  ],
  [
    'backup_storage_disk_size_bytes',
    'Size of the disk that they lie on.',
    [],
    ({ backupFill }) => single(backupFill?.totalBytes),
  ],
  [
    'backup_storage_disk_free_bytes',
    'What is free there.',
    [],
    ({ backupFill }) => single(backupFill?.freeBytes),
  ],
];

/** `backlog` is null where there is no recent one. */
export function backlogFamilies(backlog: () => Backlog | null): Family[] {
  return ROWS.map(([name, help, labels, samplesOf]) => ({
    ...{ name: CENTRAL_PREFIX + name, help, type: 'gauge', labels },
    samples() {
      const now = backlog();
      return now === null ? [] : samplesOf(now);
    },
  }));
}
