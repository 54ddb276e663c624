/** A provider's nodes here and at the central miner server, made the same: from there or to there (contract 10). */
import { microToUsd } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
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
import { type NodePlaces, nodeAddress } from './node-address.ts';
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
  nodePlaces: NodePlaces;
  /** Null: there is none. */
  miner: CentralMiner | null;
};

export type CentralMinerSync = ReturnType<typeof createCentralMinerSync>;

export function createCentralMinerSync({ miner, ...deps }: CentralMinerSyncDeps) {
  const { db } = deps;

  function required(): CentralMiner {
    if (miner !== null) return miner;
    throw new ApiError('bad_request', 'No central miner server is set up here', {
      hint: 'Add, change and remove nodes in this portal.',
    });
  }

  return {
    /**
     * Takes the list from there, by the rules that nodes are added and changed by here: all of it or, where one node is
     * refused, nothing. Nodes with pods stay, and are counted as kept.
     */
    async pull({ providerId, hotkey }: PortalIdentity): Promise<SyncAnswer> {
      const wanted = await required().list(hotkey);
      return moneyTransaction(deps, async (tx) => {
        await lockRow(tx, 'providers', providerId);
        return takeOver(tx, deps, providerId, wanted);
      });
    },

    /** Gives our list over there. */
    async push({ providerId, hotkey }: PortalIdentity): Promise<SyncAnswer> {
      const server = required();
      const nodes = await listOfProvider(db, providerId);
      return { ...(await server.replace(hotkey, nodes.map(minerNode))), kept: 0 };
    },
  };
}

async function takeOver(
  tx: Db,
  deps: OfferDeps,
  providerId: string,
  wanted: readonly MinerNode[],
): Promise<SyncAnswer> {
  const counts = { added: 0, updated: 0, removed: 0, kept: 0 };
  const missing = new Map(wanted.map((node) => [placeOf(node), node]));
  for (const { id } of await listOfProvider(tx, providerId)) {
    // In the order of ids, so that nobody waits in a circle.
    await lockRow(tx, 'executors', id);
    const node = await requireExecutor(tx, id);
    const place = placeOf({ ipAddress: node.ip_address, port: node.port });
    const wish = missing.get(place);
    missing.delete(place);
    if (wish === undefined) {
      const obstacle = await removalObstacle(tx, deps, node);
      if (obstacle === null) await removeNode(tx, deps, id);
      counts[obstacle === null ? 'removed' : 'kept'] += 1;
    } else if (await adapt(tx, deps, node, wish)) {
      counts.updated += 1;
    }
  }
  for (const wish of missing.values()) {
    await addNode(tx, deps, providerId, { ...wish, pricePerGpu: wish.usdPerGpuHour });
    counts.added += 1;
  }
  return counts;
}

/** False when it is as wished already. */
async function adapt(
  tx: Db,
  deps: OfferDeps,
  node: ExecutorEntry,
  wish: MinerNode,
): Promise<boolean> {
  const hasGpusChanged = await changeGpus(tx, deps, node, wish);
  const present = hasGpusChanged ? await requireExecutor(tx, node.id) : node;
  const { usdPerGpuHour: price } = wish;
  const hasPriceChanged = price !== null && (await changePrice(tx, deps, present, price));
  return hasGpusChanged || hasPriceChanged;
}

/** However the address is written, and wherever it leads: that is judged when it is added. Throws 400 for what is none. */
function placeOf({ ipAddress, port }: Pick<MinerNode, 'ipAddress' | 'port'>): string {
  return `${nodeAddress(ipAddress, 'private')} ${port}`;
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
