/** Heartbeats of the central API's processes, and the process that syncs each executor. */
import type { SqlDialect } from '../sql-dialects.ts';

export const processes = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table central_processes (
    boot_id text primary key,
    beat_at ${int} not null
  ) ${tableEnd}`,
  `create table sync_turns (
    executor_id text primary key,
    due_at ${int} not null,
    failures ${int} not null,
    woken ${int} not null check (woken in (0, 1)),
    boot_id text
  ) ${tableEnd}`,
  'create index sync_turns_by_time on sync_turns (due_at)',
];
