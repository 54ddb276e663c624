/** Executors for other parts of the market, and the public list of them. */
import type { Readable } from 'node:stream';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { Funnel } from './constraints.ts';
import type {
  ExecutorDetailResponse,
  ReliabilityResponse,
  RentabilityResponse,
} from './executor.schemas.ts';
import {
  type ExecutorEntry,
  findExecutor,
  updateExecutor,
  verdictsBefore,
} from './executor.store.ts';
import {
  executorResponse,
  gpuTotalOf,
  hasRoom,
  inventoryOf,
  minimumGpusOf,
} from './executor-response.ts';
import {
  dropFreeSlots,
  freeSlotsOf,
  insertSlots,
  listAllSlots,
  listBannedCards,
  listSlots,
  lockSlots,
  takeSlots,
} from './gpu-slot.store.ts';
import { chooseGpus, freeSlotsFor, isSameSlots } from './gpu-slots.ts';
import { findOnMarket } from './market.store.ts';
import { createMarketSearch } from './market-search.ts';
import type { MarketView } from './market-view.ts';
import { type AnnotationsOf, personalFields } from './node-annotations.ts';
import type { ExecutorListQuery } from './node-filters.schemas.ts';
import { createNodeListJson } from './node-list-json.ts';
import { reliabilityOf } from './reliability.service.ts';

export type { ExecutorEntry } from './executor.store.ts';
export {
  countUnproven,
  findExecutor,
  findExecutorAt,
  findExecutors,
  hasVerifiedNode,
  idsAt,
  insertExecutor,
  listOfProvider,
  listPresent,
  pageOfProvider,
  type SeenExecutor,
  storeSeenExecutors,
  updateExecutor,
} from './executor.store.ts';
export { hasRoom } from './executor-response.ts';
export { findOnMarket, type MarketNode } from './market.store.ts';
export type { MarketView } from './market-view.ts';
export type { Listed } from './offer-order.ts';

/** Throws 404 `node_not_found` for an executor that was removed or never existed. */
export async function requireExecutor(db: Db, id: string): Promise<ExecutorEntry> {
  const executor = await findExecutor(db, id);
  if (executor === undefined || executor.state === 'removed') {
    throw new ApiError('node_not_found', `There is no node ${id}`);
  }
  return executor;
}

/** Throws 404 like `requireExecutor`, and 403 for a node of another provider. */
export async function requireOwnNode(
  db: Db,
  { providerId }: { providerId: string },
  id: string,
): Promise<ExecutorEntry> {
  const executor = await requireExecutor(db, id);
  if (executor.provider_id === providerId) return executor;
  throw new ApiError('forbidden', 'This node belongs to another provider');
}

/**
 * Reserves `count` well connected GPUs for the pod and returns their UUIDs. Throws 400 `node_unavailable` if another
 * rental took these GPUs.
 */
export async function reserveGpus(
  tx: Db,
  executor: ExecutorEntry,
  count: number,
  podId: string,
): Promise<string[]> {
  const { id: executorId } = executor;
  const free = (await listSlots(tx, executorId)).filter((slot) => slot.pod_id === null);
  const gpu = inventoryOf(executor)?.gpu;
  const cards = new Map(gpu?.devices.map(({ uuid, mig }) => [uuid, mig?.parent_uuid ?? uuid]));
  const known = free.map(({ gpu_uuid: uuid }) => ({ uuid, card: cards.get(uuid) ?? uuid }));
  const uuids = chooseGpus(count, known, gpu?.topology ?? null);
  const chosen = free.filter((slot) => uuids.includes(slot.gpu_uuid));
  const taken = await takeSlots(
    tx,
    executorId,
    chosen.map((slot) => slot.idx),
    podId,
  );
  if (taken !== count) {
    throw new ApiError('node_unavailable', 'Another rental took these GPUs just now');
  }
  return chosen.map((slot) => slot.gpu_uuid);
}

export async function releaseGpus(tx: Db, podId: string): Promise<void> {
  await freeSlotsOf(tx, podId);
}

/**
 * Replaces the free slots by those of the measured GPUs. Slots of pods are unchanged. Writes nothing if the free slots
 * are the same, as after most verdicts, because the executor's row is long.
 */
export async function syncGpuSlots(
  tx: Db,
  executorId: string,
  inventory: Inventory,
): Promise<void> {
  const slots = await lockSlots(tx, executorId);
  const held = slots.filter((slot) => slot.pod_id !== null);
  const measured = freeSlotsFor(executorId, held, inventory.gpu.devices);
  if (isSameSlots(slots, [...held, ...measured])) return;
  await dropFreeSlots(tx, executorId);
  await insertSlots(tx, measured);
}

/** Removes the executor from the market permanently. The caller has checked that it has no pods. */
export async function retireExecutor(tx: Db, id: string, nowMs: number): Promise<void> {
  await dropFreeGpus(tx, id);
  await updateExecutor(tx, id, { state: 'removed', removed_at: nowMs, updated_at: nowMs });
}

/**
 * Deletes the free slots. The next measurement creates them again. Slots of a banned provider remain, because other
 * providers must not offer their cards.
 */
export async function dropFreeGpus(tx: Db, id: string): Promise<void> {
  if ((await findExecutor(tx, id))?.banned_at == null) await dropFreeSlots(tx, id);
}

export type SlotsInUse = { uuids: string[]; podIds: string[] };

/** UUIDs of the slots and ids of the pods that use them, by executor id. Executors without slots are missing. */
export async function slotsByExecutor(db: Db): Promise<ReadonlyMap<string, SlotsInUse>> {
  const known = new Map<string, SlotsInUse>();
  for (const { executor_id: id, gpu_uuid: uuid, pod_id: podId } of await listAllSlots(db)) {
    const slots = known.get(id) ?? { uuids: [], podIds: [] };
    slots.uuids.push(uuid);
    if (podId !== null && !slots.podIds.includes(podId)) slots.podIds.push(podId);
    known.set(id, slots);
  }
  return known;
}

/** Returns the UUIDs of the GPUs that nodes of banned providers reported last. */
export async function cardsOfBannedProviders(db: Db): Promise<ReadonlySet<string>> {
  return new Set(await listBannedCards(db));
}

/** Reason why a node with unknown pods cannot be rented. */
export const UNKNOWN_PODS =
  'The node runs pods that the market does not know; an operator decides about them';

/** Columns that determine whether an executor can be rented. */
type Offered = Pick<
  ExecutorEntry,
  | 'banned_at'
  | 'paused'
  | 'opted_in'
  | 'state'
  | 'unknown_pods'
  | 'slots_free'
  | 'slots_total'
  | 'gpu_count'
  | 'min_gpu_count'
>;

/** Reasons why the executor cannot be rented now; empty if it can be rented. */
export function rentalObstacles(executor: Offered): RentabilityResponse['reasons'] {
  const reasons: RentabilityResponse['reasons'] = [];
  const add = (code: string, message: string) => reasons.push({ code, message });
  if (executor.banned_at !== null) add('provider_banned', 'The provider is banned');
  if (executor.paused === 1 || executor.opted_in === 0) {
    add('node_paused_by_provider', 'The provider accepts no new rentals');
  }
  if (executor.unknown_pods > 0) add('node_unavailable', UNKNOWN_PODS);
  if (executor.state !== 'verified') {
    add('node_not_verified', 'The validator has not passed the node');
  } else if (executor.slots_free === 0) {
    add('node_unavailable', 'Every GPU is rented');
  } else if (!hasRoom(executor)) {
    add(
      'gpu_count_invalid',
      `${executor.slots_free} GPUs are free, fewer than the minimum of ${minimumGpusOf(executor)}`,
    );
  }
  return reasons;
}

const MINUTE_MS = 60_000;

export type Executors = ReturnType<typeof createExecutors>;

export type ExecutorsDeps = {
  db: Database;
  clock: Clock;
  view: MarketView;
  annotationsOf: AnnotationsOf;
};

export function createExecutors({ db, clock, view, annotationsOf }: ExecutorsDeps) {
  const listJson = createNodeListJson(db);
  const search = createMarketSearch();

  async function oldChecks({ max_check_age_minutes: most }: ExecutorListQuery) {
    if (most === undefined) return {};
    const nowMs = clock.now();
    const times = await verdictsBefore(db, nowMs - most * MINUTE_MS);
    const ages = times.map(({ id, at }) => [id, Math.ceil((nowMs - at) / MINUTE_MS)] as const);
    return { oldChecks: new Map(ages) };
  }

  return {
    /**
     * Returns JSON sorted by price, then id. With `explain`, the array is inside an object that explains the result.
     * `accountId` is null for requests without a credential. Without `page` and `size` the list is complete.
     */
    async list(
      query: ExecutorListQuery,
      accountId: string | null,
    ): Promise<{ json: Buffer | Readable; funnel: Funnel }> {
      const annotations = await annotationsOf(db, accountId, query.machine_request_id);
      const checks = await oldChecks(query);
      const page = search(await view.offers(), query, { ...annotations, ...checks });
      const { nodes, funnel, nearest, withoutLocation } = page;
      const options = {
        nowMs: clock.now(),
        summary: query.view === 'summary',
        personal: accountId === null ? null : (id: string) => personalFields(annotations, id),
      };
      const explanation =
        query.explain === true ? { funnel, nearest, without_location: withoutLocation } : null;
      return { json: await listJson.listOf(nodes, options, explanation), funnel };
    },

    /**
     * Returns an offered node, also if all its GPUs are rented. Throws 404 `node_not_found` for another node.
     * `accountId` is null for requests without a credential.
     */
    async get(id: string, accountId: string | null): Promise<ExecutorDetailResponse> {
      const executor = await findExecutor(db, id);
      if (executor === undefined || (await findOnMarket(db, id)) === undefined) {
        throw new ApiError('node_not_found', `The market does not offer a node ${id}`);
      }
      const annotations = await annotationsOf(db, accountId, undefined);
      const personal =
        accountId === null ? null : (nodeId: string) => personalFields(annotations, nodeId);
      return executorResponse(executor, { nowMs: clock.now(), summary: false, personal });
    },

    count: async () => (await view.offers()).nodes.length,
    totalCount: async () => (await view.figures()).present(),

    async reliability(id: string): Promise<ReliabilityResponse> {
      return reliabilityOf(db, await requireExecutor(db, id), clock.now());
    },

    async rentability(id: string): Promise<RentabilityResponse> {
      const executor = await requireExecutor(db, id);
      const reasons = rentalObstacles(executor);
      return {
        rentable: reasons.length === 0,
        reasons,
        free_gpu_count: executor.slots_free,
        min_gpu_count: executor.min_gpu_count ?? gpuTotalOf(executor),
      };
    },
  };
}
