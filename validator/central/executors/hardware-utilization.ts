/** How busy a node is: asked of its agent, or as last measured when that does not answer soon. */
import { z } from 'zod';
import type { GpuDevice, Inventory } from '#shared/agent-api/inventory.ts';
import { type Clock, naiveUtc } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Database } from '../db/tables.ts';
import type { Agents } from '../ports.ts';
import { inventoryOf } from './executor.row.ts';
import { requireExecutor } from './executor.service.ts';
import { percent, storageOf } from './storage.ts';

const ANSWER_WITHIN_MS = 5_000;
/** The route is open: however often it is asked, an agent is not asked more often than this. */
const FRESH_FOR_MS = 5_000;
const STALE_AFTER_MS = 60_000;
const MAX_REMEMBERED = 1_000;

export const GpuSample = z
  .object({
    index: z.int(),
    uuid: z.string(),
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
    pcie: z.string().nullable(),
    ecc_errors: z.int().nullable(),
    processes: z.int().nullable(),
  })
  .meta({ id: 'GpuSample' });

const KibUsage = { total: z.int(), used: z.int(), free: z.int(), utilization: z.number() };

export const HardwareUtilization = z
  .object({
    executor_id: z.uuid(),
    timestamp: z.string(),
    /** Older than a minute. */
    stale: z.boolean(),
    cpu: z.object({
      model: z.string(),
      count: z.int(),
      utilization: z.number().nullable(),
      load_1m: z.number().nullable(),
    }),
    ram: z.object({ ...KibUsage, available: z.int() }),
    hard_disk: z.object(KibUsage),
    network: z.object({
      rx_bytes_per_second: z.number().nullable(),
      tx_bytes_per_second: z.number().nullable(),
      upload_speed: z.number().nullable(),
      download_speed: z.number().nullable(),
    }),
    gpus: z.array(GpuSample),
  })
  .meta({ id: 'HardwareUtilization' });
export type HardwareUtilization = z.output<typeof HardwareUtilization>;

export type HardwareUtilizations = (executorId: string) => Promise<HardwareUtilization>;

type Remembered = { atMs: number; answer: Promise<Inventory | null> };

/** Throws 404 `node_not_found`, also for a node of which nothing was ever measured. */
export function createHardwareUtilizations(deps: {
  db: Database;
  clock: Clock;
  agents: Agents;
}): HardwareUtilizations {
  const { db, clock, agents } = deps;
  const remembered = new Map<string, Remembered>();

  /** Null when the agent does not answer in time. */
  async function ask(executorId: string): Promise<Inventory | null> {
    const late = new AbortController();
    const answer = agents
      .clientOf(executorId)
      .inventory()
      .catch(() => null);
    const timeout = clock.sleep(ANSWER_WITHIN_MS, late.signal).then(
      () => null,
      () => null,
    );
    try {
      return await Promise.race([answer, timeout]);
    } finally {
      late.abort();
    }
  }

  function askOnce(executorId: string): Promise<Inventory | null> {
    const nowMs = clock.monotonicMs();
    const known = remembered.get(executorId);
    if (known !== undefined && nowMs - known.atMs < FRESH_FOR_MS) return known.answer;
    if (remembered.size >= MAX_REMEMBERED) remembered.clear();
    const answer = ask(executorId);
    remembered.set(executorId, { atMs: nowMs, answer });
    return answer;
  }

  return async (executorId) => {
    const executor = await requireExecutor(db, executorId);
    const stored = inventoryOf(executor);
    // One that was never checked is not asked: its address is only a claim.
    const live = stored === null ? null : await askOnce(executorId);
    const inventory = live ?? stored;
    if (inventory === null) {
      throw new ApiError('node_not_found', 'Nothing has been measured on this node yet');
    }
    return utilizationOf(executorId, inventory, clock.now());
  };
}

function utilizationOf(id: string, inventory: Inventory, nowMs: number): HardwareUtilization {
  const { cpu } = inventory;
  return {
    executor_id: id,
    timestamp: naiveUtc(inventory.collected_ms),
    stale: nowMs - inventory.collected_ms > STALE_AFTER_MS,
    cpu: {
      model: cpu.model,
      count: cpu.cores,
      utilization: cpu.utilization_percent,
      load_1m: null,
    },
    ...storageOf(inventory),
    network: {
      rx_bytes_per_second: null,
      tx_bytes_per_second: null,
      upload_speed: null,
      download_speed: null,
    },
    gpus: inventory.gpu.devices.map(sampleOf),
  };
}

function sampleOf(device: GpuDevice): z.output<typeof GpuSample> {
  const { memory_used_mib: used, memory_total_mib: total } = device;
  return {
    index: device.index,
    uuid: device.uuid,
    name: device.name,
    gpu_utilization: device.utilization_percent,
    memory_utilization: used === null ? null : percent(used, total),
    memory_total: total,
    memory_used: used,
    temperature_c: device.temperature_c,
    power_draw_w: device.power_draw_w,
    power_limit_w: device.power_limit_w,
    graphics_speed: null,
    memory_speed: null,
    pcie: device.pci_bus_id,
    ecc_errors: null,
    processes: null,
  };
}
