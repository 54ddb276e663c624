/** Pull speeds of nodes, sizes of images, and the expected ready time of a pod. */
import type { SqlDialect } from '../sql-dialects.ts';

export const launchEstimates = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table pull_speeds (
    executor_id text primary key,
    bytes_per_second ${int} not null,
    pulls ${int} not null,
    last_finished_ms ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  `create table image_sizes (
    image text primary key,
    compressed_bytes ${int} not null,
    is_whole ${int} not null check (is_whole in (0, 1)),
    updated_at ${int} not null
  ) ${tableEnd}`,
  'create index image_sizes_by_age on image_sizes (updated_at)',
  `alter table pods add column ready_expected_at ${int}`,
  'alter table pods add column eta_basis text',
  `create index pods_launched on pods (executor_id, first_running_at)
    where first_running_at is not null`,
];
