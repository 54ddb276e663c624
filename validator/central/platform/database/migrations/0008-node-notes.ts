/** Bookmarks of nodes, and requests for machines that no provider offers yet. */
import type { SqlDialect } from '../sql-dialects.ts';

export const nodeNotes = ({ int, real, tableEnd }: SqlDialect): string[] => [
  `create table bookmarks (
    account_id text not null references accounts (id),
    executor_id text not null references executors (id),
    id text not null,
    created_at ${int} not null,
    primary key (account_id, executor_id)
  ) ${tableEnd}`,
  `create table machine_requests (
    id text primary key,
    account_id text not null references accounts (id),
    gpu_class text not null,
    gpu_count ${int} check (gpu_count between 1 and 64),
    budget_uusd_per_hour ${int} check (budget_uusd_per_hour > 0),
    country text,
    min_vram_gb ${real},
    notes text,
    notify ${int} not null check (notify in (0, 1)),
    state text not null check (state in ('pending', 'fulfilled', 'cancelled')),
    fulfilled_executor_id text references executors (id),
    created_at ${int} not null,
    updated_at ${int} not null,
    check ((state = 'fulfilled') = (fulfilled_executor_id is not null))
  ) ${tableEnd}`,
  'create index machine_requests_by_account on machine_requests (account_id, created_at, id)',
];
