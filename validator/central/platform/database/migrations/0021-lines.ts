/**
 * Network speed of a node. Verdicts set it. A verdict changes other columns that already increase the node's
 * `revision`.
 */
import type { SqlDialect } from '../sql-dialects.ts';

export const lines = ({ int }: SqlDialect): string[] => [
  `alter table executors add column download_mbps ${int}`,
  `alter table executors add column upload_mbps ${int}`,
  'drop index executors_by_revision',
  // Adds two columns to the index of 0009-market-revisions.ts.
  `create index executors_by_revision on executors (revision, id, state, paused, provider_id,
    price_uusd_per_gpu_hour, machine_name, gpu_type, gpu_count, min_gpu_count, slots_total, slots_free,
    collateral_deposited, nvlink, can_split, sysbox_runtime, gpu_memory_mib, cpu_cores, memory_kib,
    disk_free_kib, ports_free, lat, lon, location_json, first_verified_at, download_mbps, upload_mbps)`,
];
