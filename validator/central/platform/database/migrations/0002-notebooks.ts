/** Notebook servers of pods. */
import type { SqlDialect } from '../sql-dialects.ts';

export const notebooks = ({ int }: SqlDialect): string[] => [
  `alter table pods add column enable_jupyter ${int} not null default 0`,
  `alter table pods add column jupyter_port ${int}`,
  `alter table pods add column jupyter_requests ${int} not null default 0`,
  'alter table pods add column jupyter_status text',
  'alter table pods add column jupyter_error text',
  'alter table pods add column jupyter_path text',
];
