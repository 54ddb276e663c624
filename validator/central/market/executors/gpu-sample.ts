/** One GPU's figures on the wire (contract 3.2, GpuSample). Pure. */
import { z } from 'zod';
import type { GpuReadings } from '#shared/api/agent/metrics.ts';
import { percent } from './storage.ts';

/** What is older than this is called stale. */
export const STALE_AFTER_MS = 60_000;

export const GpuSample = z
  .object({
    index: z.int(),
    /** Null where the caller has not rented it. */
    uuid: z.string().nullable(),
    name: z.string(),
    gpu_utilization: z.number().nullable(),
    memory_utilization: z.number().nullable(),
    memory_total: z.int(),
    memory_used: z.int().nullable(),
    temperature_c: z.number().nullable(),
    power_draw_w: z.number().nullable(),
    power_limit_w: z.number().nullable(),
    graphics_speed: z.number().nullable(),
    memory_speed: z.number().nullable(),
    /** Its link; of a node whose agent does not tell, its place on the bus. */
    pcie: z.string().nullable(),
    ecc_errors: z.int().nullable(),
    processes: z.int().nullable(),
  })
  .meta({ id: 'GpuSample' });
export type GpuSample = z.output<typeof GpuSample>;

/** Figures stored by an older version lack the last few. */
export function gpuSampleOf(readings: GpuReadings): GpuSample {
  const { memory_used_mib: used, memory_total_mib: total } = readings;
  return {
    index: readings.index,
    uuid: readings.uuid,
    name: readings.name,
    gpu_utilization: readings.utilization_percent,
    memory_utilization: used === null ? null : percent(used, total),
    memory_total: total,
    memory_used: used,
    temperature_c: readings.temperature_c,
    power_draw_w: readings.power_draw_w,
    power_limit_w: readings.power_limit_w,
    graphics_speed: readings.graphics_clock_mhz ?? null,
    memory_speed: readings.memory_clock_mhz ?? null,
    pcie: readings.pcie_link ?? readings.pci_bus_id,
    ecc_errors: readings.ecc_errors ?? null,
    processes: readings.processes ?? null,
  };
}
