/** Copies the figures that searches filter and sort by from the inventories into columns. */
import type { SqlDialect } from '../sql-dialects.ts';

export const marketFigures = ({ int, jsonInt, jsonFlag }: SqlDialect): string[] => [
  `alter table executors add column gpu_memory_mib ${int}`,
  `alter table executors add column cpu_cores ${int}`,
  `alter table executors add column memory_kib ${int}`,
  `alter table executors add column disk_free_kib ${int}`,
  `alter table executors add column ports_free ${int}`,
  `alter table executors add column sysbox_runtime ${int}`,
  `alter table executors add column can_split ${int}`,
  `alter table executors add column nvlink ${int}`,
  // The column for NVLink is null until the next verdict, because no single member of the inventory contains the value.
  `update executors set
    gpu_memory_mib = ${jsonInt('inventory_json', ['gpu', 'devices', 0, 'memory_total_mib'])},
    cpu_cores = ${jsonInt('inventory_json', ['cpu', 'cores'])},
    memory_kib = ${jsonInt('inventory_json', ['memory', 'total_kib'])},
    disk_free_kib = ${jsonInt('inventory_json', ['disk', 'free_kib'])},
    ports_free = ${jsonInt('inventory_json', ['ports', 'free'])},
    sysbox_runtime = ${jsonFlag('inventory_json', ['docker', 'sysbox_runtime'])},
    can_split = case when simulated = 1 then 1
      else ${jsonFlag('inventory_json', ['docker', 'gpu_runtime'])} end
    where inventory_json is not null`,
  // The two columns are updated with every change of gpu_slots, under the executor's lock.
  `alter table executors add column slots_total ${int} not null default 0`,
  `alter table executors add column slots_free ${int} not null default 0`,
  `update executors set
    slots_total = (select count(*) from gpu_slots where executor_id = executors.id),
    slots_free = (select count(*) from gpu_slots
      where executor_id = executors.id and pod_id is null)`,
  // The index covers all filters, so that a search does not read the rows, which are long.
  `create index executors_on_market on executors (state, price_uusd_per_gpu_hour, id, paused,
    provider_id, machine_name, gpu_type, gpu_count, min_gpu_count, slots_total, slots_free,
    collateral_deposited, nvlink, can_split, sysbox_runtime, gpu_memory_mib, cpu_cores, memory_kib,
    disk_free_kib, ports_free, lat, lon, location_json)`,
];
