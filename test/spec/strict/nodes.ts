/** Nodes, machines and utilization, as renters read them. */
import { z } from 'zod';
import { b, i, maybe, n, Percent, Share, s, t, u } from './types.ts';

export const Location = z.object({
  country: s,
  country_code: s,
  region: maybe(s),
  region_name: maybe(s),
  city: maybe(s),
  zip: maybe(s),
  lat: maybe(n),
  lon: maybe(n),
  timezone: maybe(s),
});

export const Notice = z.object({
  starting_at: s,
  period_in_minute: maybe(i),
  permanent_removal: b,
  reason: maybe(s),
});

const Detail = z.object({
  name: s,
  cuda: s,
  capacity: i,
  uuid: maybe(s),
  power_limit: maybe(n),
  graphics_speed: maybe(n),
  memory_speed: maybe(n),
  pcie: maybe(s),
  pcie_speed: maybe(n),
  gpu_utilization: maybe(n),
  memory_utilization: maybe(n),
});
const Memory = z.object({ total: i, used: maybe(i), free: maybe(i), utilization: maybe(n) });

/** Clients read members of these objects without a check, except those that may be null. */
export const Specs = z.object({
  gpu: z.object({ count: i, driver: s, cuda_driver: maybe(i), details: z.array(Detail) }),
  cpu: z.object({ count: i, model: maybe(s), utilization: maybe(n) }),
  ram: Memory.extend({ available: maybe(i) }),
  hard_disk: Memory,
  network: z.object({ upload_speed: maybe(n), download_speed: maybe(n) }),
  os: maybe(s),
  docker: maybe(z.looseObject({ version: maybe(s) })),
  available_port_maps: maybe(z.array(z.tuple([i, i]))),
  available_port_count: i,
  sysbox_runtime: b,
  is_spot: maybe(b),
});

export const NodeSummary = z.object({
  id: u,
  huid: s.regex(/^[a-z]+-[a-z]+-[0-9a-f]{2}$/),
  machine_name: s.min(1),
  price_per_gpu: n,
  price_per_hour: n,
  gpu_count: i,
  available_gpu_count: i,
  min_gpu_count_for_rental: maybe(i),
  executor_ip_address: s,
  status: s,
  active: b,
  tier: z.enum(['secure', 'spot']),
  driver_version: maybe(s),
  max_cuda_version: maybe(n),
  effective_upload_speed_mbps: maybe(n),
  effective_download_speed_mbps: maybe(n),
  location: maybe(Location),
  reliability_score: maybe(Share),
  uptime_in_minutes: maybe(i),
  last_checked_at: maybe(t),
  miner_hotkey: maybe(s),
  validator_hotkey: maybe(s),
  provider_id: maybe(u),
  collateral_deposited: maybe(b),
  ncu_profiling_enabled: maybe(b),
  pending_price_per_hour: maybe(n),
  price_change_effective_date: maybe(t),
  is_bookmarked: maybe(b),
  machine_request_id: maybe(u),
  notice_period: maybe(Notice),
  nvlink: maybe(b),
  interconnect: maybe(s),
  p2p: maybe(b),
});
export const NodeRow = NodeSummary.extend({ specs: Specs });

const Constraint = z.object({ constraint: s, remaining: i });
const Nearest = z.object({
  constraint: s,
  requested: z.union([s, n, b]),
  offered: z.union([s, n, b]),
  executor_id: u,
  executor_huid: s,
});
/** Answer of the node list with `explain=true`. */
export const ExplainedNodes = z.object({
  executors: z.array(NodeRow),
  funnel: z.array(Constraint),
  nearest: z.array(Nearest),
});

export const Machine = z.object({ name: s, price: n, rental_rate: Share, total_gpu_count: i });
export const Capacity = z.object({
  base_model: s,
  buckets: z.record(s, z.object({ max_cap: i, unrented_count: i, hourly_rate: n })),
});
export const Stats = z.object({
  machine_name: s,
  gpu_type: s,
  total_executor_count: i,
  rented_executor_count: i,
  available_executor_count: i,
  total_gpu_count: i,
  rented_gpu_count: i,
  available_gpu_count: i,
  min_price_per_gpu: maybe(n),
  avg_price_per_gpu: maybe(n),
  max_price_per_gpu: maybe(n),
  rental_rate: Share,
});
export const DefaultImage = z.object({
  docker_image: s,
  docker_image_tag: s,
  docker_image_size: maybe(i),
  docker_image_digest: maybe(s.startsWith('sha256:')),
});
export const DeploymentEstimate = z.object({
  estimated_seconds: n,
  is_slow_machine: b,
  warning_message: maybe(s),
  is_cached_template: b,
  docker_image_size: maybe(i),
  required_balance_usd: n,
  price_per_hour: n,
});
export const Rentability = z.object({
  rentable: b,
  reasons: z.array(z.object({ code: s, message: s })),
  free_gpu_count: i,
  min_gpu_count: maybe(i),
});

const GpuSample = z.object({
  index: i,
  uuid: s,
  name: s,
  gpu_utilization: n,
  memory_utilization: n,
  memory_total: n,
  memory_used: n,
  temperature_c: maybe(n),
  power_draw_w: maybe(n),
  power_limit_w: maybe(n),
  graphics_speed: maybe(n),
  memory_speed: maybe(n),
  pcie: maybe(s),
  ecc_errors: maybe(i),
  processes: maybe(i),
});
export const Hardware = z.object({
  executor_id: u,
  timestamp: t,
  stale: b,
  cpu: z.object({ model: s, count: i, utilization: Percent, load_1m: n }),
  ram: z.object({ total: i, used: i, free: i, available: i, utilization: Percent }),
  hard_disk: z.object({ total: i, used: i, free: i, utilization: Percent }),
  network: z.object({
    rx_bytes_per_second: n,
    tx_bytes_per_second: n,
    upload_speed: maybe(n),
    download_speed: maybe(n),
  }),
  gpus: z.array(GpuSample),
});
export const GpuUtilization = z.object({
  pod_id: u,
  timestamp: t,
  stale: b,
  interval_seconds: i,
  gpus: z.array(GpuSample),
  history: z.array(z.object({ timestamp: t, gpu_utilization: n, memory_utilization: n })).max(60),
});
