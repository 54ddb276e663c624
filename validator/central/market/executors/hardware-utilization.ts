/** How busy a node is: asked of its agent, or as last measured when that does not answer soon. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { HostMetrics } from '#shared/api/agent/metrics.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { createAgentLooks } from './agent-looks.ts';
import { inventoryOf } from './executor.row.ts';
import { requireExecutor } from './executor.service.ts';
import { gpuSampleOf, STALE_AFTER_MS } from './gpu-sample.ts';
import type { HardwareUtilization } from './hardware-utilization.schemas.ts';
import { findPullSpeed } from './pull-speed.store.ts';
import { storageOf } from './storage.ts';

export type HardwareUtilizations = (executorId: string) => Promise<HardwareUtilization>;

type Measured = Pick<HostMetrics, 'simulated' | 'cpu' | 'memory' | 'disk' | 'network' | 'gpus'> & {
  atMs: number;
};

/** Throws 404 `node_not_found`, also for a node of which nothing was ever measured. */
export function createHardwareUtilizations(deps: {
  db: Database;
  clock: Clock;
  agents: Agents;
}): HardwareUtilizations {
  const { db, clock, agents } = deps;
  const look = createAgentLooks<Measured>(clock);

  return async (executorId) => {
    const executor = await requireExecutor(db, executorId);
    const stored = inventoryOf(executor);
    if (stored === null) {
      // One that was never checked is not asked: its address is only a claim.
      throw new ApiError('node_not_found', 'Nothing has been measured on this node yet');
    }
    const { last } = await look(executorId, () => measure(agents.clientOf(executorId), clock));
    const measured = last?.value ?? fromInventory(stored);
    const speed = await findPullSpeed(db, executorId);
    return {
      ...utilizationOf(measured, clock.now()),
      executor_id: executorId,
      network: {
        ...measured.network,
        upload_speed: null,
        download_speed: speed === undefined ? null : toMbps(speed.bytes_per_second),
      },
    };
  };
}

/** Agents that do not know the route yet have most of it in their inventories. */
async function measure(client: AgentClient, clock: Clock): Promise<Measured> {
  try {
    const metrics = await client.hostMetrics();
    return { ...metrics, atMs: clock.now() - metrics.age_ms };
  } catch (error) {
    const isRefused = error instanceof ApiError && error.code !== 'upstream_unavailable';
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

/** With one decimal. */
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
      utilization: cpu.utilization_percent,
      load_1m: cpu.load_1m,
    },
    ...storageOf(measured),
    // Everybody may ask.
    gpus: measured.gpus.map((gpu) => ({ ...gpuSampleOf(gpu), uuid: null })),
  };
}
