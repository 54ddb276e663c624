/** The queue of executors that the pod sync polls, in the order in which they are due. */
import type { SqlDialect } from '../sql-dialects.ts';

export const syncQueue = ({ int }: SqlDialect): string[] => [
  `alter table sync_turns add column empty_since ${int}`,
  'drop index sync_turns_by_time',
  'create index sync_turns_due on sync_turns (woken, due_at) where failures = 0',
  'create index sync_turns_failing on sync_turns (woken, due_at) where failures > 0',
  // Includes the nodes of pods that ended within the ten minutes before the last end.
  `insert into sync_turns (executor_id, due_at, failures, woken)
    select executor_id, 0, 0, 0 from (
      select executor_id from pods where ended_at is null
      union select executor_id from pods
        where ended_at > (select max(ended_at) from pods where ended_at is not null) - 600000
      union select executor_id from volume_copies
    ) as busy where executor_id not in (select executor_id from sync_turns)`,
];
