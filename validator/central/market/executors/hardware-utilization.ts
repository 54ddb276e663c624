/** Utilization of a node's hardware, from its agent, or from the last measurement if the agent does not answer soon. */

import { z } from 'zod';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { GpuReadings, HostMetrics } from '#shared/api/agent/metrics.ts';
import { described } from '#shared/api/described.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError, isUnavailable } from '#shared/runtime/errors.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { createAgentCache } from './agent-cache.ts';
import { requireExecutor } from './executor.service.ts';
import { inventoryOf } from './executor-response.ts';
import { findPullSpeed } from './pull-speed.store.ts';
import { percent, storageOf } from './specs.ts';

/** Age from which figures are marked as stale. */
export const STALE_AFTER_MS = 60_000;

export const GpuSample = z
  .object(
    described(
      {
        index: z.int(),
        uuid: z.string(),
        name: z.string(),
        gpu_utilization: z.number(),
        memory_utilization: z.number(),
        memory_total: z.int(),
        memory_used: z.int(),
        temperature_c: z.number().nullable(),
        power_draw_w: z.number().nullable(),
        power_limit_w: z.number().nullable(),
        graphics_speed: z.number().nullable(),
        memory_speed: z.number().nullable(),
        pcie: z.string().nullable(),
        ecc_errors: z.int().nullable(),
        processes: z.int().nullable(),
      },
      {
        index: 'Number of the GPU on its host, from 0.',
        uuid: 'UUID of the GPU; empty unless the caller rents it.',
        name: 'Full name of the GPU.',
        gpu_utilization: 'Load in percent; always 0 for a MIG device, which has no reading.',
        memory_utilization: 'Used memory in percent.',
        memory_total: 'Memory in MiB.',
        memory_used: 'Used memory in MiB.',
        temperature_c: 'Temperature in degrees Celsius; null if unknown.',
        power_draw_w: 'Power in watts; null if unknown.',
        power_limit_w: 'Power limit in watts; null if unknown.',
        graphics_speed: 'Clock of the GPU in MHz; null if unknown.',
        memory_speed: 'Clock of the memory in MHz; null if unknown.',
        pcie: 'PCIe link, or the bus id if the agent does not report the link; null if unknown.',
        ecc_errors: 'Number of uncorrected memory errors; null if unknown.',
        processes: 'Number of processes that use the GPU; null if unknown.',
      },
    ),
  )
  .meta({ id: 'GpuSample' });
export type GpuSample = z.output<typeof GpuSample>;

/** Returns the API's figures of a GPU. Figures that older versions stored lack the newest members. */
export function gpuSampleOf(readings: GpuReadings): GpuSample {
  const { memory_total_mib: total } = readings;
  const used = readings.memory_used_mib ?? 0;
  return {
    index: readings.index,
    uuid: readings.uuid,
    name: readings.name,
    gpu_utilization: readings.utilization_percent ?? 0,
    memory_utilization: percent(used, total),
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

const KibUsage = described(
  { total: z.int(), used: z.int(), free: z.int(), utilization: z.number() },
  {
    total: 'Size in KiB.',
    used: 'Used part in KiB.',
    free: 'Free part in KiB.',
    utilization: 'Used part in percent.',
  },
);

export const HardwareUtilization = z
  .object(
    described(
      {
        executor_id: z.uuid(),
        timestamp: z.string(),
        stale: z.boolean(),
        simulated: z.boolean(),
        cpu: z.object(
          described(
            {
              model: z.string(),
              count: z.int(),
              utilization: z.number(),
              load_1m: z.number(),
            },
            {
              model: 'Name of the processor.',
              count: 'Number of processors.',
              utilization: "Load in percent; 0 before the agent's second sample.",
              load_1m: 'Load average over a minute; 0 if unknown.',
            },
          ),
        ),
        ram: z.object({
          ...KibUsage,
          ...described(
            { available: z.int() },
            { available: 'Memory in KiB that processes can still get.' },
          ),
        }),
        hard_disk: z.object(KibUsage),
        network: z.object(
          described(
            {
              rx_bytes_per_second: z.number(),
              tx_bytes_per_second: z.number(),
              upload_speed: z.number().nullable(),
              download_speed: z.number().nullable(),
            },
            {
              rx_bytes_per_second: "Received bytes per second; 0 before the agent's second sample.",
              tx_bytes_per_second: "Sent bytes per second; 0 before the agent's second sample.",
              upload_speed: 'Upload speed in Mbit/s; null if it was not measured.',
              download_speed:
                'Speed of image pulls in Mbit/s, unpacking included; null before the first pull.',
            },
          ),
        ),
        gpus: z.array(GpuSample),
      },
      {
        executor_id: 'Id of the node.',
        timestamp: 'Time of the measurement (UTC).',
        stale: 'True if the measurement is older than a minute or the node does not answer.',
        simulated: 'True if the GPUs are simulated.',
        cpu: 'Processors of the node.',
        ram: 'Memory of the node.',
        hard_disk: 'Disk of the node.',
        network: 'Network of the node.',
        gpus: 'GPUs of the node.',
      },
    ),
  )
  .meta({ id: 'HardwareUtilization' });
export type HardwareUtilization = z.output<typeof HardwareUtilization>;

export type HardwareUtilizations = (executorId: string) => Promise<HardwareUtilization>;

type Measured = Pick<HostMetrics, 'simulated' | 'cpu' | 'memory' | 'disk' | 'network' | 'gpus'> & {
  atMs: number;
};

/** Throws 404 `node_not_found`, including for a node without any measurement. */
export function createHardwareUtilizations(deps: {
  db: Database;
  clock: Clock;
  agents: Agents;
}): HardwareUtilizations {
  const { db, clock, agents } = deps;
  const read = createAgentCache<Measured>(clock);

  return async (executorId) => {
    const executor = await requireExecutor(db, executorId);
    const stored = inventoryOf(executor);
    if (stored === null) {
      // The agent of an unchecked node is not called, because its address is not verified.
      throw new ApiError('node_not_found', 'Nothing has been measured on this node yet');
    }
    const { last } = await read(executorId, () => measure(agents.clientOf(executorId), clock));
    const measured = last?.value ?? fromInventory(stored);
    const speed = await findPullSpeed(db, executorId);
    return {
      ...utilizationOf(measured, clock.now()),
      executor_id: executorId,
      network: {
        rx_bytes_per_second: measured.network.rx_bytes_per_second ?? 0,
        tx_bytes_per_second: measured.network.tx_bytes_per_second ?? 0,
        upload_speed: null,
        download_speed: speed === undefined ? null : toMbps(speed.bytes_per_second),
      },
    };
  };
}

/**
 * Reads the host's figures. Older agents lack the route; for these, the inventory is read, which has most of the
 * figures.
 */
async function measure(client: AgentClient, clock: Clock): Promise<Measured> {
  try {
    const metrics = await client.hostMetrics();
    return { ...metrics, atMs: clock.now() - metrics.age_ms };
  } catch (error) {
    const isRefused = error instanceof ApiError && !isUnavailable(error.code);
    if (!isRefused) throw error;
    return fromInventory(await client.inventory());
  }
}

function fromInventory(inventory: Inventory): Measured {
  return {
    atMs: inventory.collected_ms,
    simulated: inventory.simulated,
    cpu: { ...inventory.cpu, load_1m: null },
    memory: inventory.memory,
    disk: inventory.disk,
    network: { rx_bytes_per_second: null, tx_bytes_per_second: null },
    gpus: inventory.gpu.devices,
  };
}

/** Rounded to one decimal. */
function toMbps(bytesPerSecond: number): number {
  return Math.round((bytesPerSecond * 8) / 100_000) / 10;
}

function utilizationOf(
  measured: Measured,
  nowMs: number,
): Omit<HardwareUtilization, 'executor_id' | 'network'> {
  const { cpu } = measured;
  return {
    timestamp: naiveUtc(measured.atMs),
    stale: nowMs - measured.atMs > STALE_AFTER_MS,
    simulated: measured.simulated,
    cpu: {
      model: cpu.model,
      count: cpu.cores,
      utilization: cpu.utilization_percent ?? 0,
      load_1m: cpu.load_1m ?? 0,
    },
    ...storageOf(measured),
    // UUIDs are omitted because the route needs no credential.
    gpus: measured.gpus.map((gpu) => ({ ...gpuSampleOf(gpu), uuid: '' })),
  };
}
