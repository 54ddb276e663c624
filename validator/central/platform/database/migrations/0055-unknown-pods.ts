/**
 * Pods that nodes run and that the database does not have, or has in an older generation, because it is an old copy.
 */
import type { SqlDialect } from '../sql-dialects.ts';

export const unknownPods = ({ int, tableEnd, stampOneMore }: SqlDialect): string[] => [
  `create table unknown_pods (
    executor_id text not null,
    pod_id text not null,
    kind text not null check (kind in ('missing', 'newer')),
    generation ${int} not null,
    image text not null,
    gpu_count ${int} not null,
    created_at ${int} not null,
    found_at ${int} not null,
    remove_requested_at ${int},
    primary key (executor_id, pod_id)
  ) ${tableEnd}`,
  `alter table executors add column unknown_pods ${int} not null default 0`,
  ...stampOneMore('executors', 'unknown_pods'),
  'drop index executors_by_revision',
  // Adds a column to the index of 0042-reliability.ts.
  `create index executors_by_revision on executors (revision, id, state, paused, provider_id,
    price_uusd_per_gpu_hour, machine_name, gpu_type, gpu_count, min_gpu_count, slots_total, slots_free,
    collateral_deposited, nvlink, can_split, sysbox_runtime, gpu_memory_mib, cpu_cores, memory_kib,
    disk_free_kib, ports_free, lat, lon, location_json, first_verified_at, download_mbps, upload_mbps,
    reliability_permille, reachable_since, unknown_pods)`,
];
