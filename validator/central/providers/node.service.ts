/** Adds, lists, changes and removes the nodes of a provider. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import {
  type ExecutorEntry,
  pageOfProvider,
  requireExecutor,
  requireOwnNode,
  updateExecutor,
} from '../market/executors/executor.service.ts';
import { isLeaving } from '../market/executors/notice-period.ts';
import type { EnterPlace, NodeLocation } from '../market/places/place.schemas.ts';
import { describePlace, enterPlace, type PlaceDeps } from '../market/places/place.service.ts';
import { listUnendedOn } from '../market/pods/pod.service.ts';
import type { Database, Db } from '../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../platform/database/transactions.ts';
import type { PortalIdentity } from '../platform/identity.ts';
import { type PageQuery, pageOf } from '../platform/portal-answer.ts';
import type {
  AddNode,
  NodeListQuery,
  NodePod,
  PortalNode,
  UpdateGpu,
  UpdatePrice,
  Verification,
} from './node.schemas.ts';
import type { AllowedPlaces } from './node-address.ts';
import {
  addNode,
  changeGpus,
  changePrice,
  removalObstacle,
  removeNode,
  requireMinimum,
  requireNoPartialPods,
} from './node-offer.ts';
import { nodeRow, podsForProvider, type RenterReference, verificationOf } from './node-response.ts';

export type NodesDeps = PlaceDeps & {
  db: Database;
  clock: Clock;
  random: Random;
  nodePlaces: AllowedPlaces;
  renterReference: RenterReference;
  /** URL of the documentation of checks; null if none is configured. */
  docsUrl: string | null;
};

export type Nodes = ReturnType<typeof createNodes>;

export function createNodes(deps: NodesDeps) {
  const { db, clock, docsUrl } = deps;
  const ownRow = (executor: ExecutorEntry) => nodeRow(executor, true, docsUrl);

  /** Locks the caller's node, runs `change` and returns the new row. */
  function update(
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
    /** Runs in the caller's transaction. Throws the errors of `addNode`. */
    async addIn(tx: Db, { providerId }: PortalIdentity, body: AddNode): Promise<PortalNode> {
      await lockRow(tx, 'providers', providerId);
      return ownRow(await addNode(tx, deps, providerId, body));
    },

    /** Lists the nodes of the caller, of another provider (`miner_hotkey`), or of all providers (`scope=all`). */
    async page(
      caller: PortalIdentity,
      query: NodeListQuery,
    ): Promise<{ items: PortalNode[]; total: number }> {
      const isAll = query.scope === 'all' && query.miner_hotkey === undefined;
      const hotkey = isAll ? null : (query.miner_hotkey ?? caller.hotkey);
      const { items, total } = await pageOfProvider(db, hotkey, query);
      const isOwn = (executor: ExecutorEntry) => executor.provider_id === caller.providerId;
      return { items: items.map((each) => nodeRow(each, isOwn(each), docsUrl)), total };
    },

    get: async (caller: PortalIdentity, id: string): Promise<PortalNode> =>
      ownRow(await requireOwnNode(db, caller, id)),

    verification: async (caller: PortalIdentity, id: string): Promise<Verification> =>
      verificationOf(await requireOwnNode(db, caller, id), docsUrl),

    /** Lists the pods that have not ended and whose deletion has not started, oldest first. */
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
      update(caller, id, (tx, node) => changePrice(tx, deps, node, body.price_per_gpu)),

    updateGpu: (caller: PortalIdentity, id: string, body: UpdateGpu): Promise<PortalNode> =>
      update(caller, id, (tx, node) =>
        changeGpus(tx, deps, node, {
          gpuType: body.gpu_type ?? node.gpu_type,
          gpuCount: body.gpu_count ?? node.gpu_count,
        }),
      ),

    /** Allows rentals of a part of the node, with at least `minimum` GPUs. */
    setMinimum: (caller: PortalIdentity, id: string, minimum: number): Promise<PortalNode> =>
      update(caller, id, async (tx, node) => {
        requireMinimum(node, minimum);
        await setMinimumIn(tx, id, minimum);
      }),

    /** Allows only rentals of the whole node. */
    clearMinimum: (caller: PortalIdentity, id: string): Promise<PortalNode> =>
      update(caller, id, async (tx, node) => {
        requireNoPartialPods(node, await listUnendedOn(tx, id));
        await setMinimumIn(tx, id, null);
      }),

    location: async (caller: PortalIdentity, id: string): Promise<NodeLocation> =>
      describePlace(db, await requireOwnNode(db, caller, id)),

    /** Replaces the place that the caller entered; null removes it. */
    async setLocation(
      caller: PortalIdentity,
      id: string,
      place: EnterPlace | null,
    ): Promise<NodeLocation> {
      await update(caller, id, (tx, node) => enterPlace(tx, deps, node, place));
      return this.location(caller, id);
    },

    /**
     * Makes the market reject new rentals of the node with `node_paused_by_provider`. Pods on the node continue.
     * Idempotent.
     */
    pause: (caller: PortalIdentity, id: string): Promise<PortalNode> =>
      update(caller, id, (tx) => updateExecutor(tx, id, { paused: 1, updated_at: clock.now() })),

    /**
     * Offers the node for new rentals again. Idempotent. Throws `conflict` once an announced removal of the node has
     * started.
     */
    resume: (caller: PortalIdentity, id: string): Promise<PortalNode> =>
      update(caller, id, async (tx, node) => {
        if (isLeaving(node, clock.now())) {
          throw new ApiError('conflict', 'The announced removal of this node has started', {
            hint: 'Add the node again after its removal.',
          });
        }
        await updateExecutor(tx, id, { paused: 0, updated_at: clock.now() });
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
