/**
 * A revision for every executor, which increases when a value that the market shows changes. Processes that cache the
 * market read only executors with a higher revision.
 */
import type { SqlDialect } from '../sql-dialects.ts';

/**
 * Columns that the market shows or filters by. `last_seen_at` is not included, because it changes with every response
 * of an agent.
 */
const SHOWN = [
  ...['provider_id', 'ip_address', 'port', 'gpu_type', 'gpu_count', 'price_uusd_per_gpu_hour'],
  ...['min_gpu_count', 'collateral_deposited', 'lat', 'lon', 'location_json', 'state', 'paused'],
  ...['validator_hotkey', 'machine_name', 'driver_version', 'inventory_json', 'simulated'],
  ...['first_verified_at', 'gpu_memory_mib', 'cpu_cores', 'memory_kib', 'disk_free_kib'],
  ...['ports_free', 'sysbox_runtime', 'can_split', 'nvlink', 'slots_total', 'slots_free'],
];

export const marketRevisions = ({ int, stampRevisions }: SqlDialect): string[] => [
  `alter table executors add column revision ${int} not null default 0`,
  ...stampRevisions('executors', SHOWN, {
    table: 'providers',
    columns: ['hotkey', 'opted_in', 'banned_at'],
    reference: 'provider_id',
  }),
  'drop index executors_on_market',
  // The index covers the query that updates a cache, so that the query does not read the rows, which are long.
  `create index executors_by_revision on executors (revision, id, state, paused, provider_id,
    price_uusd_per_gpu_hour, machine_name, gpu_type, gpu_count, min_gpu_count, slots_total, slots_free,
    collateral_deposited, nvlink, can_split, sysbox_runtime, gpu_memory_mib, cpu_cores, memory_kib,
    disk_free_kib, ports_free, lat, lon, location_json, first_verified_at)`,
];
