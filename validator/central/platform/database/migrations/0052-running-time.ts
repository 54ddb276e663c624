/** Running time of the central API, and the grace of expired backups, which is counted in running time. */
import type { SqlDialect } from '../sql-dialects.ts';

export const runningTime = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table running_time (
    id ${int} primary key check (id = 1),
    total_ms ${int} not null,
    boot_id text not null
  ) ${tableEnd}`,
  "insert into running_time (id, total_ms, boot_id) values (1, 0, '')",
  `alter table backup_logs add column cleanup_after_ms ${int} not null default 0`,
];
