/** Volumes, which remain after their pods end: the saved data and the copies on nodes. */
import type { SqlDialect } from '../sql-dialects.ts';

export const volumes = ({ int, real, tableEnd }: SqlDialect): string[] => [
  `create table volumes (
    id text primary key,
    account_id text not null references accounts (id),
    name text not null,
    description text not null,
    limit_bytes ${int} not null,
    attached_pod_id text unique references pods (id),
    bytes ${int} not null,
    files ${int} not null,
    measured_at ${int},
    password_sealed text not null,
    made_at ${int},
    snapshot_id text,
    saved_at ${int},
    has_waste ${int} not null check (has_waste in (0, 1)),
    cleaning_boot_id text,
    created_at ${int} not null,
    updated_at ${int} not null,
    deleted_at ${int}
  ) ${tableEnd}`,
  'create index volumes_by_account on volumes (account_id, created_at, id)',
  'create index volumes_to_clean on volumes (id) where has_waste = 1 or deleted_at is not null',
  // No foreign key to the volume: a copy on an unreachable node must still be removed when the node is reachable again.
  `create table volume_copies (
    id text primary key,
    volume_id text not null,
    account_id text not null references accounts (id),
    pod_id text not null references pods (id),
    executor_id text not null references executors (id),
    state text not null check (state in ('restoring', 'attached', 'saving', 'dropping')),
    source_snapshot_id text,
    operation_id text,
    stage text,
    percent ${real} not null,
    attempts ${int} not null,
    retry_at ${int},
    error_code text,
    error_message text,
    seen_at ${int} not null,
    created_at ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  // At most one copy of a volume is in use. It has the newest data.
  `create unique index volume_copies_live on volume_copies (volume_id) where state <> 'dropping'`,
  'create index volume_copies_on_node on volume_copies (executor_id, created_at)',
  'create index volume_copies_of_pod on volume_copies (pod_id)',
];
