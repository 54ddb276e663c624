/** A provider's nodes: adding, listing, changing, removing (specification, Provider portal operations). */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import {
  type ExecutorEntry,
  pageOfProvider,
  requireExecutor,
  updateExecutor,
} from '../market/executors/executor.service.ts';
import { listUnendedOn } from '../market/pods/pod.service.ts';
import type { Database, Db } from '../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../platform/database/transactions.ts';
import type { PortalIdentity } from '../platform/identity.ts';
import { requireMinimum, requireNoPart } from './minimum-rule.ts';
import { nodeRow, verificationOf } from './node.row.ts';
import type {
  AddNode,
  NodeListQuery,
  NodePod,
  PortalNode,
  UpdateGpu,
  UpdatePrice,
  Verification,
} from './node.schemas.ts';
import type { NodePlaces } from './node-address.ts';
import { addNode, changeGpus, changePrice, removalObstacle, removeNode } from './node-offer.ts';
import { podsForProvider, type RenterReference } from './node-pods.ts';
import { pageOf } from './portal-answer.ts';
import type { PageQuery } from './provider.schemas.ts';

export type NodesDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  nodePlaces: NodePlaces;
  renterReference: RenterReference;
  /** Where checks are explained; null: nowhere. */
  docsUrl: string | null;
};

export type Nodes = ReturnType<typeof createNodes>;

/** 404 for none, 403 for another provider's. */
export async function requireOwnNode(
  handle: Db,
  { providerId }: PortalIdentity,
  id: string,
): Promise<ExecutorEntry> {
  const executor = await requireExecutor(handle, id);
  if (executor.provider_id === providerId) return executor;
  throw new ApiError('forbidden', 'This node belongs to another provider');
}

/** Rules of the portal's node routes. */
export function createNodes(deps: NodesDeps) {
  const { db, clock, docsUrl } = deps;
  const ownRow = (executor: ExecutorEntry) => nodeRow(executor, true, docsUrl);

  /** One change of an own node, which nobody else changes or rents meanwhile; the row afterwards. */
  function changed(
    caller: PortalIdentity,
    id: string,
    change: (tx: Db, node: ExecutorEntry) => Promise<unknown>,
  ): Promise<PortalNode> {
    return moneyTransaction(deps, async (tx) => {
      await lockRow(tx, 'executors', id);
      await change(tx, await requireOwnNode(tx, caller, id));
      return ownRow(await requireExecutor(tx, id));
    });
  }

  const setMinimumIn = (tx: Db, id: string, minimum: number | null) =>
    updateExecutor(tx, id, { min_gpu_count: minimum, updated_at: clock.now() });

  return {
    /** In the caller's transaction. Throws as `addNode` does. */
    async addIn(tx: Db, { providerId }: PortalIdentity, body: AddNode): Promise<PortalNode> {
      await lockRow(tx, 'providers', providerId);
      return ownRow(await addNode(tx, deps, providerId, body));
    },

    /** The caller's own, another provider's, or everybody's. */
    async page(
      caller: PortalIdentity,
      query: NodeListQuery,
    ): Promise<{ items: PortalNode[]; total: number }> {
      const everybody = query.scope === 'all' && query.miner_hotkey === undefined;
      const hotkey = everybody ? null : (query.miner_hotkey ?? caller.hotkey);
      const { items, total } = await pageOfProvider(db, hotkey, query);
      const isOwn = (executor: ExecutorEntry) => executor.provider_id === caller.providerId;
      return { items: items.map((each) => nodeRow(each, isOwn(each), docsUrl)), total };
    },

    get: async (caller: PortalIdentity, id: string): Promise<PortalNode> =>
      ownRow(await requireOwnNode(db, caller, id)),

    verification: async (caller: PortalIdentity, id: string): Promise<Verification> =>
      verificationOf(await requireOwnNode(db, caller, id), docsUrl),

    /** Those that have not ended, but for those being deleted; oldest first. */
    async pods(
      caller: PortalIdentity,
      id: string,
      query: PageQuery,
    ): Promise<{ items: NodePod[]; total: number }> {
      await requireOwnNode(db, caller, id);
      const pods = await listUnendedOn(db, id);
      return pageOf(podsForProvider(pods, caller.providerId, deps.renterReference), query);
    },

    updatePrice: (caller: PortalIdentity, id: string, body: UpdatePrice): Promise<PortalNode> =>
      changed(caller, id, (tx, node) => changePrice(tx, deps, node, body.price_per_gpu)),

    updateGpu: (caller: PortalIdentity, id: string, body: UpdateGpu): Promise<PortalNode> =>
      changed(caller, id, (tx, node) =>
        changeGpus(tx, deps, node, {
          gpuType: body.gpu_type ?? node.gpu_type,
          gpuCount: body.gpu_count ?? node.gpu_count,
        }),
      ),

    /** From now on parts of it are rented, none smaller than this. */
    setMinimum: (caller: PortalIdentity, id: string, minimum: number): Promise<PortalNode> =>
      changed(caller, id, async (tx, node) => {
        requireMinimum(node, minimum);
        await setMinimumIn(tx, id, minimum);
      }),

    /** From now on it is rented whole only. */
    clearMinimum: (caller: PortalIdentity, id: string): Promise<PortalNode> =>
      changed(caller, id, async (tx, node) => {
        requireNoPart(node, await listUnendedOn(tx, id));
        await setMinimumIn(tx, id, null);
      }),

    remove(caller: PortalIdentity, id: string): Promise<PortalNode> {
      return moneyTransaction(deps, async (tx) => {
        await lockRow(tx, 'executors', id);
        const executor = await requireOwnNode(tx, caller, id);
        const obstacle = await removalObstacle(tx, deps, executor);
        if (obstacle !== null) throw obstacle;
        await removeNode(tx, deps, id);
        return ownRow({ ...executor, state: 'removed' });
      });
    },
  };
}
