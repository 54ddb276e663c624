/** How an executor looks on the wire (contract 3.1). Pure. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { shortGpuType } from '#shared/api/gpu-type.ts';
import { microToUsd } from '#shared/api/money.ts';
import type { ExecutorDetailResponse, ExecutorLocation } from './executor.schemas.ts';
import type { ExecutorEntry } from './executor.store.ts';
import { huidOf } from './huid.ts';
import { interconnectName, interconnectOf } from './interconnect.ts';
import type { PersonalMembers } from './node-notes.ts';
import { noticeOf } from './notice-period.ts';
import { cudaVersionNumber, specsOf } from './specs.ts';

const MINUTE_MS = 60_000;

/** What its agent measured at the last verdict that had it; null before the first. */
export function inventoryOf(executor: { inventory_json: string | null }): Inventory | null {
  // Written by us from a parsed Inventory: its form is known.
  return executor.inventory_json === null
    ? null
    : (JSON.parse(executor.inventory_json) as Inventory);
}

/** GPUs of the node: as measured, or as its provider says while nothing was measured. */
export function gpuTotalOf(executor: Pick<ExecutorEntry, 'slots_total' | 'gpu_count'>): number {
  return executor.slots_total > 0 ? executor.slots_total : executor.gpu_count;
}

/** The smallest count it rents; without a minimum only the whole node. */
export function minimumGpusOf(
  executor: Pick<ExecutorEntry, 'slots_total' | 'gpu_count' | 'min_gpu_count'>,
): number {
  return executor.min_gpu_count ?? gpuTotalOf(executor);
}

/** Whether enough GPUs are free for at least one rental. */
export function hasRoom(
  executor: Pick<ExecutorEntry, 'slots_total' | 'slots_free' | 'gpu_count' | 'min_gpu_count'>,
): boolean {
  return executor.slots_free >= 1 && executor.slots_free >= minimumGpusOf(executor);
}

/** Full GPU name as measured, else as its provider says. */
export function machineNameOf(executor: Pick<ExecutorEntry, 'machine_name' | 'gpu_type'>): string {
  return executor.machine_name ?? executor.gpu_type;
}

/** Whole minutes since it first passed its checks; null before that. */
export function uptimeMinutesOf(
  executor: Pick<ExecutorEntry, 'first_verified_at'>,
  nowMs: number,
): number | null {
  const { first_verified_at: sinceMs } = executor;
  return sinceMs === null ? null : Math.max(0, Math.floor((nowMs - sinceMs) / MINUTE_MS));
}

/** Where it stands; every member is null when nobody told. */
export function locationOf(
  executor: Pick<ExecutorEntry, 'location_json' | 'lat' | 'lon'>,
): ExecutorLocation {
  const known =
    executor.location_json === null
      ? {}
      : (JSON.parse(executor.location_json) as Partial<ExecutorLocation>);
  return {
    country: known.country ?? null,
    country_code: known.country_code ?? null,
    region: known.region ?? null,
    region_name: known.region_name ?? null,
    city: known.city ?? null,
    zip: known.zip ?? null,
    lat: executor.lat,
    lon: executor.lon,
    timezone: known.timezone ?? null,
  };
}

export type RowOptions = PassingOptions & {
  /** Without `specs`, for `view=summary`. */
  summary: boolean;
};

type PassingOptions = {
  nowMs: number;
  /** What a known caller sees besides, by the node's id; null for anybody else. */
  personal: ((nodeId: string) => PersonalMembers) | null;
};

/** The full row. */
export function executorRow(executor: ExecutorEntry, options: RowOptions): ExecutorDetailResponse {
  return { ...lastingMembers(executor, options.summary), ...passingMembers(executor, options) };
}

type PassingMember = 'uptime_in_minutes' | 'is_bookmarked' | 'machine_request_id';

/** What depends on who asks and when. */
export function passingMembers(
  executor: Pick<ExecutorEntry, 'id' | 'first_verified_at'>,
  { nowMs, personal }: PassingOptions,
): Pick<ExecutorDetailResponse, PassingMember> {
  return { uptime_in_minutes: uptimeMinutesOf(executor, nowMs), ...personal?.(executor.id) };
}

/** What is the same for everybody until the executor's revision moves. */
export function lastingMembers(
  executor: ExecutorEntry,
  isSummary: boolean,
): Omit<ExecutorDetailResponse, PassingMember> {
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
    ...(isSummary ? {} : { specs: inventory === null ? null : specsOf(inventory, executor, []) }),
    reliability_score: null,
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
    simulated: executor.simulated === 1,
  };
}
