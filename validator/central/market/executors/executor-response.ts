/** Converts an executor to its form in API responses. Pure. */

import { createHash } from 'node:crypto';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { shortGpuType } from '#shared/api/gpu-type.ts';
import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { ExecutorDetailResponse, ExecutorLocation } from './executor.schemas.ts';
import type { ExecutorEntry } from './executor.store.ts';
import type { PersonalFields } from './node-annotations.ts';
import { noticeOf } from './notice-period.ts';
import { cudaVersionNumber, interconnectName, interconnectOf, specsOf } from './specs.ts';

const MINUTE_MS = 60_000;

/** The inventory of the latest verdict with an inventory; null before the first such verdict. */
export function inventoryOf(executor: { inventory_json: string | null }): Inventory | null {
  // The stored text was written from a parsed Inventory, so it is not validated again.
  return executor.inventory_json === null
    ? null
    : (JSON.parse(executor.inventory_json) as Inventory);
}

/** The inventory of a node that has or had a pod. Throws for a node that was never measured. */
export function measuredInventoryOf(executor: Pick<ExecutorEntry, 'id' | 'inventory_json'>) {
  const inventory = inventoryOf(executor);
  if (inventory !== null) return inventory;
  throw new Error(`executor ${executor.id} has a pod but no inventory`);
}

/** Number of GPUs as measured, or as the provider entered before the first measurement. */
export function gpuTotalOf(executor: Pick<ExecutorEntry, 'slots_total' | 'gpu_count'>): number {
  return executor.slots_total > 0 ? executor.slots_total : executor.gpu_count;
}

/** The smallest number of GPUs that can be rented; without a minimum, the whole node. */
export function minimumGpusOf(
  executor: Pick<ExecutorEntry, 'slots_total' | 'gpu_count' | 'min_gpu_count'>,
): number {
  return executor.min_gpu_count ?? gpuTotalOf(executor);
}

/** Returns true if enough GPUs are free for at least one rental. */
export function hasRoom(
  executor: Pick<ExecutorEntry, 'slots_total' | 'slots_free' | 'gpu_count' | 'min_gpu_count'>,
): boolean {
  return executor.slots_free >= 1 && executor.slots_free >= minimumGpusOf(executor);
}

/** Full GPU name as measured, or as the provider entered. */
export function machineNameOf(executor: Pick<ExecutorEntry, 'machine_name' | 'gpu_type'>): string {
  return executor.machine_name ?? executor.gpu_type;
}

/** Whole minutes for which every check reached the node; null before it first passed, and while it is unreachable. */
export function uptimeMinutesOf(
  executor: Pick<ExecutorEntry, 'first_verified_at' | 'reachable_since'>,
  nowMs: number,
): number | null {
  const { first_verified_at: verifiedMs, reachable_since: reachableMs } = executor;
  if (verifiedMs === null || reachableMs === null) return null;
  return Math.max(0, Math.floor((nowMs - Math.max(verifiedMs, reachableMs)) / MINUTE_MS));
}

/** Reliability from 0 to 1; null if the node was not observed for long enough. */
function scoreOf({ reliability_permille: permille }: ExecutorEntry): number | null {
  return permille === null ? null : permille / 1_000;
}

/** Returns null unless country and country code are known. */
export function locationOf(
  executor: Pick<ExecutorEntry, 'location_json' | 'lat' | 'lon'>,
): ExecutorLocation | null {
  if (executor.location_json === null) return null;
  const known = JSON.parse(executor.location_json) as Partial<ExecutorLocation>;
  const { country, country_code } = known;
  if (country == null || country_code == null) return null;
  return {
    country,
    country_code,
    region: known.region ?? null,
    region_name: known.region_name ?? null,
    city: known.city ?? null,
    zip: known.zip ?? null,
    lat: executor.lat,
    lon: executor.lon,
    timezone: known.timezone ?? null,
  };
}

export type ResponseOptions = VolatileOptions & {
  /** True omits `specs`, for `view=summary`. */
  summary: boolean;
};

type VolatileOptions = {
  nowMs: number;
  /** Fields for the caller by node id; null for requests without a credential. */
  personal: ((nodeId: string) => PersonalFields) | null;
};

export function executorResponse(
  executor: ExecutorEntry,
  options: ResponseOptions,
): ExecutorDetailResponse {
  return { ...stableFields(executor, options.summary), ...volatileFields(executor, options) };
}

type VolatileField =
  | 'uptime_in_minutes'
  | 'last_checked_at'
  | 'is_bookmarked'
  | 'machine_request_id';

/** Fields that depend on the caller or the time. */
export function volatileFields(
  executor: Pick<ExecutorEntry, 'id' | 'first_verified_at' | 'reachable_since' | 'verdict_at'>,
  { nowMs, personal }: VolatileOptions,
): Pick<ExecutorDetailResponse, VolatileField> {
  const { verdict_at: checkedMs } = executor;
  return {
    uptime_in_minutes: uptimeMinutesOf(executor, nowMs),
    last_checked_at: checkedMs === null ? null : naiveUtc(checkedMs),
    ...personal?.(executor.id),
  };
}

/** Fields that are the same for every caller until the executor's revision changes. */
export function stableFields(
  executor: ExecutorEntry,
  isSummary: boolean,
): Omit<ExecutorDetailResponse, VolatileField> {
  const inventory = inventoryOf(executor);
  const total = gpuTotalOf(executor);
  const price = executor.price_uusd_per_gpu_hour;
  const machineName = machineNameOf(executor);
  return {
    id: executor.id,
    huid: huidOf(executor.id),
    machine_name: machineName,
    gpu_type: shortGpuType(machineName),
    price_per_gpu: microToUsd(price),
    price_per_hour: microToUsd(price * total),
    gpu_count: total,
    available_gpu_count: executor.slots_free,
    min_gpu_count_for_rental: executor.min_gpu_count,
    executor_ip_address: executor.ip_address,
    status: 'available',
    active: true,
    tier: 'secure',
    driver_version: executor.driver_version,
    max_cuda_version: cudaVersionNumber(inventory?.gpu.cuda_version ?? null),
    effective_upload_speed_mbps: executor.upload_mbps,
    effective_download_speed_mbps: executor.download_mbps,
    location: locationOf(executor),
    ...(isSummary || inventory === null ? {} : { specs: specsOf(inventory, executor, []) }),
    reliability_score: scoreOf(executor),
    miner_hotkey: executor.miner_hotkey,
    validator_hotkey: executor.validator_hotkey,
    provider_id: executor.provider_id,
    collateral_deposited: executor.collateral_deposited === 1,
    ncu_profiling_enabled: null,
    pending_price_per_hour: null,
    price_change_effective_date: null,
    notice_period: noticeOf(executor),
    nvlink: executor.nvlink === null ? null : executor.nvlink === 1,
    interconnect: interconnectName(interconnectOf(inventory?.gpu.topology ?? null)),
    p2p: null,
    location_check: executor.location_check,
    simulated: executor.simulated === 1,
  };
}

const ADJECTIVES = [
  'swift',
  'brave',
  'calm',
  'eager',
  'gentle',
  'cosmic',
  'golden',
  'lunar',
  'zesty',
  'noble',
] as const;
const NOUNS = [
  'hawk',
  'lion',
  'eagle',
  'fox',
  'wolf',
  'shark',
  'raven',
  'matrix',
  'comet',
  'orbit',
] as const;

/** Human-readable name derived from the node's id. Not unique: there are 25 600 names. */
export function huidOf(id: string): string {
  const hash = createHash('md5').update(id.toLowerCase()).digest('hex');
  const adjective = ADJECTIVES[Number.parseInt(hash.slice(0, 4), 16) % ADJECTIVES.length];
  const noun = NOUNS[Number.parseInt(hash.slice(4, 8), 16) % NOUNS.length];
  return `${adjective}-${noun}-${hash.slice(-2)}`;
}
