/** Synchronises a provider's nodes with the central miner server, in either direction. */
import { microToUsd } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import {
  type ExecutorEntry,
  listOfProvider,
  requireExecutor,
} from '../market/executors/executor.service.ts';
import type { Database, Db } from '../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../platform/database/transactions.ts';
import type { PortalIdentity } from '../platform/identity.ts';
import type { CentralMiner, MinerNode } from '../platform/ports.ts';
import { type AllowedPlaces, nodeAddress } from './node-address.ts';
import {
  addNode,
  changeGpus,
  changePrice,
  type OfferDeps,
  removalObstacle,
  removeNode,
} from './node-offer.ts';
import type { SyncAnswer } from './provider.schemas.ts';

export type CentralMinerSyncDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  nodePlaces: AllowedPlaces;
  /** Null if no central miner server is configured. */
  miner: CentralMiner | null;
};

/** Response if no central miner server is configured. */
const NO_CHANGES: SyncAnswer = { added: 0, updated: 0, removed: 0, kept: 0 };

export type CentralMinerSync = ReturnType<typeof createCentralMinerSync>;

export function createCentralMinerSync({ miner, ...deps }: CentralMinerSyncDeps) {
  const { db } = deps;

  return {
    /**
     * Applies the server's list to the provider's nodes, by the rules of the portal. If one node is rejected, no node
     * changes. A node that the server does not list remains, and counts as kept, while it has pods or volumes that
     * are not saved yet.
     */
    async pull({ providerId, hotkey }: PortalIdentity): Promise<SyncAnswer> {
      if (miner === null) return NO_CHANGES;
      const wanted = await miner.list(hotkey);
      return moneyTransaction(deps, async (tx) => {
        await lockRow(tx, 'providers', providerId);
        return applyList(tx, deps, providerId, wanted);
      });
    },

    /** Replaces the server's list by the provider's nodes. */
    async push({ providerId, hotkey }: PortalIdentity): Promise<SyncAnswer> {
      if (miner === null) return NO_CHANGES;
      const nodes = await listOfProvider(db, providerId);
      return { ...(await miner.replace(hotkey, nodes.map(minerNode))), kept: 0 };
    },
  };
}

async function applyList(
  tx: Db,
  deps: OfferDeps,
  providerId: string,
  wanted: readonly MinerNode[],
): Promise<SyncAnswer> {
  const counts = { added: 0, updated: 0, removed: 0, kept: 0 };
  const missing = new Map(wanted.map((node) => [placeOf(node), node]));
  for (const { id } of await listOfProvider(tx, providerId)) {
    // Locks in the order of ids to avoid deadlocks.
    await lockRow(tx, 'executors', id);
    const node = await requireExecutor(tx, id);
    const place = placeOf({ ipAddress: node.ip_address, port: node.port });
    const target = missing.get(place);
    missing.delete(place);
    if (target === undefined) {
      const obstacle = await removalObstacle(tx, deps, node);
      if (obstacle === null) await removeNode(tx, deps, id);
      counts[obstacle === null ? 'removed' : 'kept'] += 1;
    } else if (await updateNode(tx, deps, node, target)) {
      counts.updated += 1;
    }
  }
  for (const target of missing.values()) {
    await addNode(tx, deps, providerId, { ...target, pricePerGpu: target.usdPerGpuHour });
    counts.added += 1;
  }
  return counts;
}

/** Returns false if the node already has the listed values. */
async function updateNode(
  tx: Db,
  deps: OfferDeps,
  node: ExecutorEntry,
  target: MinerNode,
): Promise<boolean> {
  const hasGpusChanged = await changeGpus(tx, deps, node, target);
  const present = hasGpusChanged ? await requireExecutor(tx, node.id) : node;
  const { usdPerGpuHour: price } = target;
  const hasPriceChanged = price !== null && (await changePrice(tx, deps, present, price));
  return hasGpusChanged || hasPriceChanged;
}

/**
 * Returns the canonical address and port. `addNode` checks whether the address is allowed. Throws 400 for an invalid
 * address.
 */
function placeOf({ ipAddress, port }: Pick<MinerNode, 'ipAddress' | 'port'>): string {
  return `${nodeAddress(ipAddress, { places: 'private', loopback: true })} ${port}`;
}

function minerNode(node: ExecutorEntry): MinerNode {
  return {
    ipAddress: node.ip_address,
    port: node.port,
    gpuType: node.gpu_type,
    gpuCount: node.gpu_count,
    usdPerGpuHour: microToUsd(node.price_uusd_per_gpu_hour),
  };
}
