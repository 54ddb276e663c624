/**
 * Time limit of launches, and the arrived bytes of the image, which extend the limit. For a launch that is in progress
 * during the migration, the time limit begins when the scheduled job `launch-limit` runs for its pod for the first
 * time.
 */
import type { SqlDialect } from '../sql-dialects.ts';

export const launchLimit = ({ int }: SqlDialect): string[] => [
  `alter table pods add column launch_began_at ${int}`,
  `alter table pods add column launch_until ${int}`,
  `alter table pods add column launch_bytes ${int} not null default 0`,
  `alter table pods add column launch_bytes_at ${int}`,
  `insert into due_work
    select 'launch-limit', id, created_at, created_at, 0, null from pods
    where ended_at is null and first_running_at is null
    and state in ('pending', 'building', 'pulling', 'starting', 'restoring')`,
];
