/** Backups of pods: schedules, repositories, and the backup and restore operations on nodes. */
import type { SqlDialect } from '../sql-dialects.ts';

/** Columns of all operations on nodes. */
export const operation = ({ int, real }: SqlDialect): string => `
    id text primary key,
    account_id text not null references accounts (id),
    pod_id text not null references pods (id),
    executor_id text not null references executors (id),
    repository_id text not null references backup_repositories (id),
    state text not null,
    stage text,
    percent ${real} not null,
    total_files ${int},
    processed_files ${int},
    total_bytes ${int},
    processed_bytes ${int},
    bytes_per_second ${real},
    remaining_seconds ${real},
    sent_at ${int},
    cancel_at ${int},
    heartbeat_at ${int} not null,
    node_heartbeat_ms ${int},
    abandoned_at ${int},
    error_code text,
    error_message text,
    request_id text,
    created_at ${int} not null,
    started_at ${int},
    completed_at ${int}`;

/** A pod has at most one open operation. Operations are found by pod, node and repository. */
export const operationIndexes = (table: string): string[] => [
  `create unique index ${table}_open_on_pod on ${table} (pod_id) where completed_at is null`,
  `create index ${table}_open_on_node on ${table} (executor_id) where completed_at is null`,
  `create index ${table}_open_in on ${table} (repository_id) where completed_at is null`,
  `create index ${table}_abandoned on ${table} (executor_id) where abandoned_at is not null`,
  `create index ${table}_by_pod on ${table} (pod_id, created_at)`,
  `create index ${table}_by_account on ${table} (account_id, created_at)`,
  `create index ${table}_by_age on ${table} (created_at)`,
];

export const backups = (dialect: SqlDialect): string[] => {
  const { int, tableEnd } = dialect;
  return [
    `create table backup_repositories (
    id text primary key,
    pod_id text not null unique references pods (id),
    account_id text not null references accounts (id),
    password_sealed text not null,
    made_at ${int},
    cleaning_boot_id text,
    created_at ${int} not null,
    removed_at ${int}
  ) ${tableEnd}`,
    'create index backup_repositories_kept on backup_repositories (pod_id) where removed_at is null',
    `create table backup_configs (
    id text primary key,
    pod_id text not null unique references pods (id),
    account_id text not null references accounts (id),
    backup_frequency_hours ${int} not null,
    retention_days ${int} not null,
    backup_path text not null,
    next_at ${int},
    created_at ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
    'create index backup_configs_by_account on backup_configs (account_id)',
    'create index backup_configs_due on backup_configs (next_at) where next_at is not null',
    `create table backup_logs (${operation(dialect)},
    config_id text,
    name text,
    description text,
    path text not null,
    retention_days ${int} not null,
    snapshot_id text,
    quality text,
    expires_at ${int},
    cleanup_at ${int},
    cleanup_problem text,
    cleaned_at ${int}
  ) ${tableEnd}`,
    ...operationIndexes('backup_logs'),
    'create index backup_logs_expiring on backup_logs (expires_at) where expires_at is not null',
    'create index backup_logs_to_clean on backup_logs (repository_id) where cleanup_at is not null',
    'create index backup_logs_kept on backup_logs (repository_id, state)',
    `create table restore_logs (${operation(dialect)},
    backup_id text not null,
    snapshot_id text not null,
    source_path text not null,
    target_path text not null,
    mode text not null,
    occasion text not null,
    log text not null
  ) ${tableEnd}`,
    ...operationIndexes('restore_logs'),
  ];
};
