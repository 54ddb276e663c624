/** Scheduled work. */
import type { SqlDialect } from '../sql-dialects.ts';

export const schedule = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table due_work (
    kind text not null,
    subject text not null,
    due_at ${int} not null,
    look_at ${int} not null,
    attempts ${int} not null,
    last_error text,
    primary key (kind, subject)
  ) ${tableEnd}`,
  'create index due_work_by_time on due_work (look_at, kind, subject)',
  // Due times that were stored in columns of the pods before this migration.
  ...[
    ['pod-removal', 'removal_at', `delete_requested_at is null and removal_at is not null`],
    [
      'pod-removal-warning',
      'removal_warning_at',
      'delete_requested_at is null and removal_warning_at is not null',
    ],
    ['pod-failure-end', 'delete_requested_at + 180000', `state = 'creation_failed' and phase = ''`],
  ].map(
    ([kind, at, condition]) => `insert into due_work
      select '${kind}', id, ${at}, ${at}, 0, null from pods where ended_at is null and ${condition}`,
  ),
  'drop index pods_to_remove',
  'drop index pods_to_warn_of',
  'alter table pods drop column removal_warning_at',
];
