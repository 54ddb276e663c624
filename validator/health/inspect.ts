/** Collects the facts of one executor: the only part of a check that touches the network. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import { type Inventory, isRentable, type VerifyResult } from '#shared/agent-api/inventory.ts';
import type { ExecutorToCheck } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import { ApiError, messageOf } from '#shared/errors.ts';
import type { Facts, Policy } from '../checks/check.ts';

const TRIES = 2;

/** Never rejects: what could not be learnt is null in the facts. */
export async function inspect(
  executor: ExecutorToCheck,
  client: AgentClient,
  clock: Clock,
  policy: Policy,
): Promise<Facts> {
  const read = await readInventory(client);
  const facts = { executor, policy, receivedMs: clock.now() };
  if ('error' in read) {
    return { ...facts, inventory: null, transportError: read.error, probe: null };
  }
  const { inventory } = read;
  const probe = executor.rented ? null : await runProbe(client, inventory);
  return { ...facts, inventory, transportError: null, probe };
}

async function readInventory(
  client: AgentClient,
): Promise<{ inventory: Inventory } | { error: string }> {
  let error = '';
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    try {
      return { inventory: await client.inventory() };
    } catch (failure) {
      error = messageOf(failure).slice(0, 1000);
    }
  }
  return { error };
}

/** Null when the probe itself could not be asked for: that is no fault of the container runtime. */
async function runProbe(client: AgentClient, inventory: Inventory): Promise<VerifyResult | null> {
  const real = inventory.gpu.driver === 'nvidia';
  // A card that its agent keeps from pods would fail the host, whose other cards may be sound.
  const offered = inventory.gpu.devices.filter(isRentable);
  const gpuUuids = real ? offered.map((device) => device.uuid) : [];
  try {
    return await client.verify({ gpu_uuids: gpuUuids, cpu_cores: inventory.cpu.cores });
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
