/** Schema 2: what pods know of their notebook server. */
import type { SqlWords } from '../sql-dialects.ts';

/** Statements, in order. */
export const notebooks = ({ int }: SqlWords): string[] => [
  `alter table pods add column enable_jupyter ${int} not null default 0`,
  `alter table pods add column jupyter_port ${int}`,
  `alter table pods add column jupyter_requests ${int} not null default 0`,
  'alter table pods add column jupyter_status text',
  'alter table pods add column jupyter_error text',
  'alter table pods add column jupyter_path text',
];
