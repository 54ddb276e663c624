/** Reliability of nodes: counters of each day, and the score that the market shows. */
import type { SqlDialect } from '../sql-dialects.ts';

export const reliability = ({ int, tableEnd, stampOneMore }: SqlDialect): string[] => [
  // No foreign key to the executor: transactions of pods write these rows, and a reference would lock the executor's
  // row.
  `create table node_days (
    executor_id text not null,
    day ${int} not null,
    observed_ms ${int} not null,
    reachable_ms ${int} not null,
    rented_ms ${int} not null,
    launches_succeeded ${int} not null,
    launches_failed ${int} not null,
    interruptions ${int} not null,
    primary key (executor_id, day)
  ) ${tableEnd}`,
  'create index node_days_by_day on node_days (day)',
  `alter table executors add column reliability_permille ${int}
    check (reliability_permille between 0 and 1000)`,
  `alter table executors add column observed_at ${int}`,
  `alter table executors add column reachable_since ${int}`,
  'update executors set reachable_since = first_verified_at',
  // observed_at is not included, because it changes with every verdict.
  ...stampOneMore('executors', 'reliability_permille'),
  ...stampOneMore('executors', 'reachable_since'),
  'drop index executors_by_revision',
  // Adds two columns to the index of 0021-lines.ts.
  `create index executors_by_revision on executors (revision, id, state, paused, provider_id,
    price_uusd_per_gpu_hour, machine_name, gpu_type, gpu_count, min_gpu_count, slots_total, slots_free,
    collateral_deposited, nvlink, can_split, sysbox_runtime, gpu_memory_mib, cpu_cores, memory_kib,
    disk_free_kib, ports_free, lat, lon, location_json, first_verified_at, download_mbps, upload_mbps,
    reliability_permille, reachable_since)`,
];
