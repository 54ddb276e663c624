/** History of metrics of pods and nodes, as compressed blocks, and the progress of its collection from the agents. */
import type { SqlDialect } from '../sql-dialects.ts';

export const metricHistory = ({ int, bytes, tableEnd }: SqlDialect): string[] => [
  `create table metric_history (
    owner_id text not null,
    part ${int} not null check (part in (0, 1)),
    newest_day ${int} not null,
    data ${bytes} not null,
    primary key (owner_id, part)
  ) ${tableEnd}`,
  'create index metric_history_newest on metric_history (newest_day)',
  `create table metric_collections (
    executor_id text primary key,
    due_at ${int} not null,
    failures ${int} not null,
    epoch text,
    tick ${int},
    shift ${int}
  ) ${tableEnd}`,
  'create index metric_collections_due on metric_collections (due_at)',
];
