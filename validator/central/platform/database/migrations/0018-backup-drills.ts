/** Restore drills, which read backups back: the time of the next drill and the result of the last one. */
import type { SqlDialect } from '../sql-dialects.ts';
import { operation, operationIndexes } from './0015-backups.ts';

export const backupDrills = (dialect: SqlDialect): string[] => {
  const { int, tableEnd } = dialect;
  return [
    `create table backup_drills (${operation(dialect)},
    backup_id text not null,
    snapshot_id text not null,
    occasion text not null
  ) ${tableEnd}`,
    ...operationIndexes('backup_drills'),
    `alter table backup_configs add column drill_at ${int}`,
    'create index backup_configs_drills on backup_configs (drill_at) where next_at is not null',
    'alter table backup_logs add column verify_status text',
    `alter table backup_logs add column verified_at ${int}`,
    'alter table backup_logs add column verify_error text',
    'alter table backup_logs add column verify_error_code text',
    `alter table backup_logs add column verified_files ${int}`,
    `alter table backup_logs add column verified_bytes ${int}`,
  ];
};
