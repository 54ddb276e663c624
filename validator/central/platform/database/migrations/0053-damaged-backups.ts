/** Restores of damaged backups: the request, the lost files, and whether the pod was restarted. */
import type { SqlDialect } from '../sql-dialects.ts';

export const damagedBackups = ({ int }: SqlDialect): string[] => [
  `alter table restore_logs add column salvage ${int} not null default 0`,
  'alter table restore_logs add column lost_files_json text',
  `alter table restore_logs add column restarted_pod ${int}`,
];
