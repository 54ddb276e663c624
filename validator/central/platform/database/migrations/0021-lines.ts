/** How fast the line of a node is. It comes with verdicts, whose columns already move the node's `revision`. */
import type { SqlWords } from '../sql-dialects.ts';

export const lines = ({ int }: SqlWords): string[] => [
  `alter table executors add column download_mbps ${int}`,
  `alter table executors add column upload_mbps ${int}`,
  'drop index executors_by_revision',
  // As it was (0009-market-revisions.ts), and lines.
  `create index executors_by_revision on executors (revision, id, state, paused, provider_id,
    price_uusd_per_gpu_hour, machine_name, gpu_type, gpu_count, min_gpu_count, slots_total, slots_free,
    collateral_deposited, nvlink, can_split, sysbox_runtime, gpu_memory_mib, cpu_cores, memory_kib,
    disk_free_kib, ports_free, lat, lon, location_json, first_verified_at, download_mbps, upload_mbps)`,
];
