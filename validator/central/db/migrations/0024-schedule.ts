/** What is to happen at a time, one row for each thing that is still to happen. */
import type { SqlWords } from '../sql-words.ts';

export const schedule = ({ int, tableEnd }: SqlWords): string[] => [
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
];
