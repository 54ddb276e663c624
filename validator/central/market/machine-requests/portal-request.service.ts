/**
 * Machine requests for providers: lists them, matches them with nodes, and fulfils them. Providers do not learn who the
 * renter is.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database, Db, MachineRequest } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { Actor, PortalIdentity } from '../../platform/identity.ts';
import { type PageQuery, pageOf } from '../../platform/portal-answer.ts';
import {
  type ExecutorEntry,
  findExecutor,
  hasVerifiedNode,
  pageOfProvider,
  rentalObstacles,
  requireOwnNode,
} from '../executors/executor.service.ts';
import { gpuTotalOf } from '../executors/executor-response.ts';
import { subjectOf } from '../executors/node-filters.ts';
import type { MachineAdded, PortalRequest, RequestAggregate } from './machine-request.schemas.ts';
import {
  findMachineRequest,
  groupPending,
  listPendingUpTo,
  moveMachineRequest,
  pageOfPending,
} from './machine-request.store.ts';
import { toPortalRequest } from './machine-request-response.ts';
import { aggregateOf } from './request-aggregate.ts';
import { matchesRequest } from './request-match.ts';
import type { NotifyFulfilled } from './request-notifications.ts';

/** Maximum number of pending requests that are compared with one node, oldest first. */
const MAX_COMPARED_REQUESTS = 10_000;
/** Maximum number of a provider's nodes that are compared with one request, newest first. */
const MAX_COMPARED_NODES = 1_000;

export type PortalRequestCaller = { provider: PortalIdentity; actor: Actor };
export type RequestPage = { items: PortalRequest[]; total: number };

export type PortalRequestsDeps = { db: Database; clock: Clock; notifyFulfilled: NotifyFulfilled };

export type PortalRequests = ReturnType<typeof createPortalRequests>;

export function createPortalRequests({ db, clock, notifyFulfilled }: PortalRequestsDeps) {
  /** Throws 403 for a provider without a verified node, before any id is read. */
  async function requireVerified(handle: Db, { providerId }: PortalIdentity): Promise<void> {
    if (await hasVerifiedNode(handle, providerId)) return;
    throw new ApiError(
      'forbidden',
      'Machine requests are shown to providers with a verified node',
      {
        hint: 'Add a node that passes the checks. Before that, GET /machine-requests returns only counts.',
      },
    );
  }

  async function requireRequest(handle: Db, id: string): Promise<MachineRequest> {
    const request = await findMachineRequest(handle, id);
    if (request !== undefined && request.state !== 'cancelled') return request;
    throw new ApiError('not_found', 'Machine request not found');
  }

  /**
   * Returns the id of the named node, or of the provider's newest node that meets the request. Throws 400 if no node
   * meets the request.
   */
  async function requireMatchingNode(
    tx: Db,
    provider: PortalIdentity,
    request: MachineRequest,
    executorId: string | null,
  ): Promise<string> {
    const firstPage = { page: 1, limit: MAX_COMPARED_NODES };
    const nodes =
      executorId === null
        ? (await pageOfProvider(tx, provider.hotkey, firstPage)).items
        : [await requireOwnNode(tx, provider, executorId)];
    const node = nodes.find((each) => isRentableFor(request, each));
    if (node !== undefined) return node.id;
    const [named] = executorId === null ? [] : nodes;
    const [obstacle] = named === undefined ? [] : rentalObstacles(named);
    if (obstacle !== undefined) {
      throw new ApiError('bad_request', `The node cannot be rented now: ${obstacle.message}`, {
        hint: 'Fulfil the request once the node is verified and free; the request stays pending until then.',
      });
    }
    const message =
      named === undefined
        ? 'None of your free nodes meets the request'
        : 'The node does not meet the request';
    throw new ApiError('bad_request', message, {
      hint: 'Use a verified node with the requested GPU type, enough free GPUs, and a price and country within the request.',
    });
  }

  return {
    /** Lists pending requests, oldest first; returns only counts to a provider without a verified node. */
    async list(
      { providerId }: PortalIdentity,
      query: PageQuery,
    ): Promise<RequestPage | RequestAggregate> {
      if (!(await hasVerifiedNode(db, providerId))) return aggregateOf(await groupPending(db));
      const { rows, total } = await pageOfPending(db, query);
      return { items: rows.map(toPortalRequest), total };
    },

    async get(provider: PortalIdentity, id: string): Promise<PortalRequest> {
      await requireVerified(db, provider);
      return toPortalRequest(await requireRequest(db, id));
    },

    /** Lists pending requests that a node of the caller meets. */
    async matching(
      provider: PortalIdentity,
      executorId: string,
      query: PageQuery,
    ): Promise<RequestPage> {
      const node = await requireOwnNode(db, provider, executorId);
      await requireVerified(db, provider);
      const subject = wholeNode(node);
      const pending = await listPendingUpTo(db, subject.gpuCount, MAX_COMPARED_REQUESTS);
      const matching = pending.filter((request) => matchesRequest(request, subject));
      return pageOf(matching.map(toPortalRequest), query);
    },

    /**
     * Fulfils a request and notifies its renter. Repeated calls change nothing. Throws 409 if another node fulfilled
     * it.
     */
    fulfil: (caller: PortalRequestCaller, { requestId, executorId }: MachineAdded) =>
      db.transaction().execute(async (tx): Promise<PortalRequest> => {
        const { provider, actor } = caller;
        if (executorId !== null) {
          await lockRow(tx, 'executors', executorId);
          await requireOwnNode(tx, provider, executorId);
        }
        await requireVerified(tx, provider);
        const request = await requireRequest(tx, requestId);
        if (request.state === 'fulfilled') {
          await requireSame(tx, provider, request, executorId);
          return toPortalRequest(request);
        }
        const nodeId = await requireMatchingNode(tx, provider, request, executorId);
        const change = { fulfilled_executor_id: nodeId, updated_at: clock.now() };
        if (!(await moveMachineRequest(tx, request.id, 'fulfilled', change)))
          throw alreadyFulfilled();
        const fulfilled = await requireRequest(tx, requestId);
        await notifyFulfilled(tx, fulfilled, actor);
        return toPortalRequest(fulfilled);
      }),
  };
}

/** Throws 409 if the request was fulfilled with another node or by another provider. */
async function requireSame(
  tx: Db,
  { providerId }: PortalIdentity,
  { fulfilled_executor_id: nodeId }: MachineRequest,
  executorId: string | null,
): Promise<void> {
  const node = nodeId === null ? undefined : await findExecutor(tx, nodeId);
  const isOwn = node?.provider_id === providerId;
  if (!isOwn || (executorId !== null && executorId !== nodeId)) throw alreadyFulfilled();
}

function alreadyFulfilled(): ApiError {
  return new ApiError('conflict', 'The machine request is already fulfilled');
}

/**
 * Returns true if the renter could rent the requested GPUs now. Ignores conditions on figures that the node does not
 * report.
 */
function isRentableFor(request: MachineRequest, node: ExecutorEntry): boolean {
  const free = subjectOf(node, node.price_uusd_per_gpu_hour, node.slots_free);
  const known = {
    ...request,
    country: free.locationJson === null ? null : request.country,
    min_vram_gb: free.gpuMemoryMib === null ? null : request.min_vram_gb,
  };
  return rentalObstacles(node).length === 0 && matchesRequest(known, free);
}

/** Returns the node with all its GPUs at its price. Figures are as measured, or as the provider entered. */
function wholeNode(node: ExecutorEntry) {
  return subjectOf(node, node.price_uusd_per_gpu_hour, gpuTotalOf(node));
}
