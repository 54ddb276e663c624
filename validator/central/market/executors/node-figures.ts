/**
 * Figures for searching nodes, stored with each verdict, and their units in requests: GB of 10^9 bytes, countries by
 * code or name. Pure.
 */

import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { LineFigures, MeasuredFigures } from '../../platform/database/tables/executors.ts';
import type { Executor } from '../../platform/database/tables.ts';
import { locationOf } from './executor-response.ts';
import { interconnectOf } from './specs.ts';

const BYTES_PER_GB = 1_000_000_000;
const BYTES_PER_MIB = 1_048_576;
const BYTES_PER_KIB = 1_024;

type FigureColumns = MeasuredFigures & Pick<Executor, 'reliability_permille'>;

/** Figure of a node by the name of the request's member that sets its minimum; null if unknown. */
export const MINIMUM_FIGURES = {
  min_vram_gb: (node: FigureColumns) => memoryGbOf(node.gpu_memory_mib),
  min_cpus: (node: FigureColumns) => node.cpu_cores,
  min_ram_gb: (node: FigureColumns) => storageGbOf(node.memory_kib),
  min_disk_gb: (node: FigureColumns) => storageGbOf(node.disk_free_kib),
  min_ports: (node: FigureColumns) => node.ports_free,
  min_reliability: ({ reliability_permille: permille }: FigureColumns) =>
    permille === null ? null : permille / 1_000,
} as const;
export type MinimumFigure = keyof typeof MINIMUM_FIGURES;

/** Converts MiB to GB, rounded down, so that a node has at least the amount. */
export function memoryGbOf(mib: number | null): number | null {
  return gigabytes(mib, BYTES_PER_MIB);
}

/** Converts KiB to GB, rounded down, so that a node has at least the amount. */
export function storageGbOf(kib: number | null): number | null {
  return gigabytes(kib, BYTES_PER_KIB);
}

/** Code and full name of the country; empty if it is unknown. */
export function countryNamesOf(locationJson: string | null): string[] {
  const known = locationOf({ location_json: locationJson, lat: null, lon: null });
  return known === null ? [] : [known.country_code, known.country];
}

/** Returns true if `wanted` is the country's code or name, ignoring case. A node without a country never matches. */
export function isInCountry(locationJson: string | null, wanted: string): boolean {
  const name = wanted.trim().toLowerCase();
  return countryNamesOf(locationJson).some((text) => text.toLowerCase() === name);
}

/**
 * Names that match the region: its code (`BE`), country and code (`DE-BE`), and its name. Unknown names are omitted.
 */
export function regionNamesOf(locationJson: string | null): string[] {
  const known = locationOf({ location_json: locationJson, lat: null, lon: null });
  if (known === null) return [];
  const { country_code: country, region, region_name: name } = known;
  return [region, region === null ? null : `${country}-${region}`, name].filter(
    (text) => text !== null,
  );
}

/** Returns true if `wanted` is one of the region's names, ignoring case. A node without a region never matches. */
export function isInRegion(locationJson: string | null, wanted: string): boolean {
  const name = wanted.trim().toLowerCase();
  return regionNamesOf(locationJson).some((text) => text.toLowerCase() === name);
}

function gigabytes(amount: number | null, unitBytes: number): number | null {
  return amount === null ? null : Math.floor((amount * unitBytes * 100) / BYTES_PER_GB) / 100;
}

/** Figures of a node without measurements. */
export const UNMEASURED: MeasuredFigures & LineFigures = {
  gpu_memory_mib: null,
  cpu_cores: null,
  memory_kib: null,
  disk_free_kib: null,
  ports_free: null,
  sysbox_runtime: null,
  can_split: null,
  nvlink: null,
  download_mbps: null,
  upload_mbps: null,
};

export function figuresOf(inventory: Inventory): MeasuredFigures {
  const { gpu, docker } = inventory;
  const memories = gpu.devices.map((device) => device.memory_total_mib);
  // Inventories that older versions stored lack the topology.
  const joined = interconnectOf(gpu.topology ?? null)?.nvlink ?? null;
  return {
    gpu_memory_mib: memories.length === 0 ? null : Math.min(...memories),
    cpu_cores: inventory.cpu.cores,
    memory_kib: inventory.memory.total_kib,
    disk_free_kib: inventory.disk.free_kib,
    ports_free: inventory.ports.free,
    sysbox_runtime: docker.sysbox_runtime ? 1 : 0,
    can_split: canSplit(inventory) ? 1 : 0,
    nvlink: joined === null ? null : joined ? 1 : 0,
  };
}

/** Returns true if single GPUs can be passed to containers and pods have disk quotas. */
function canSplit({ docker, isolation, simulated }: Inventory): boolean {
  return (docker.gpu_runtime || simulated) && isolation.disk_quota !== 'none';
}
