/** What providers read of machine requests, and how they answer them (marketplace reference 1.8). */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database, Db, MachineRequest } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { Actor, PortalIdentity } from '../../platform/identity.ts';
import { requireOwnNode } from '../../providers/node.service.ts';
import { pageOf } from '../../providers/portal-answer.ts';
import type { PageQuery } from '../../providers/provider.schemas.ts';
import {
  type ExecutorEntry,
  findExecutor,
  hasVerifiedNode,
  pageOfProvider,
  rentalObstacles,
} from '../executors/executor.service.ts';
import { gpuTotalOf } from '../executors/executor-response.ts';
import { subjectOf } from '../executors/node-filters.ts';
import { answers } from './machine-request.match.ts';
import { toPortalRequest } from './machine-request.row.ts';
import {
  findMachineRequest,
  groupPending,
  listPendingUpTo,
  moveMachineRequest,
  pageOfPending,
} from './machine-request.store.ts';
import type { MachineAdded, PortalRequest, RequestAggregate } from './portal-request.schemas.ts';
import { aggregateOf } from './request-bands.ts';
import type { TellFulfilled } from './request-news.ts';

/** Looked through for one node, the oldest first. */
const MOST_MATCHED = 10_000;
/** Of a provider's nodes, the newest first, for one that answers a request. */
const MOST_NODES = 1_000;

export type PortalRequestCaller = { provider: PortalIdentity; actor: Actor };
export type RequestPage = { items: PortalRequest[]; total: number };

export type PortalRequestsDeps = { db: Database; clock: Clock; tellFulfilled: TellFulfilled };

export type PortalRequests = ReturnType<typeof createPortalRequests>;

export function createPortalRequests({ db, clock, tellFulfilled }: PortalRequestsDeps) {
  /** Whoever has none learns nothing, not even which ids there are. */
  async function requireVerified(handle: Db, { providerId }: PortalIdentity): Promise<void> {
    if (await hasVerifiedNode(handle, providerId)) return;
    throw new ApiError(
      'forbidden',
      'Machine requests are shown to providers with a verified node',
      {
        hint: 'Add a node, and have it pass the checks; until then GET /machine-requests counts them.',
      },
    );
  }

  async function requireRequest(handle: Db, id: string): Promise<MachineRequest> {
    const request = await findMachineRequest(handle, id);
    if (request !== undefined && request.state !== 'cancelled') return request;
    throw new ApiError('not_found', 'Machine request not found');
  }

  /** The node that is meant: the one named, or the newest of the provider's that will do. Throws 400 when none will. */
  async function nodeFor(
    tx: Db,
    provider: PortalIdentity,
    request: MachineRequest,
    executorId: string | null,
  ): Promise<string> {
    const firstPage = { page: 1, limit: MOST_NODES };
    const nodes =
      executorId === null
        ? (await pageOfProvider(tx, provider.hotkey, firstPage)).items
        : [await requireOwnNode(tx, provider, executorId)];
    const node = nodes.find((each) => isAnswer(request, each));
    if (node !== undefined) return node.id;
    const [named] = executorId === null ? [] : nodes;
    const [obstacle] = named === undefined ? [] : rentalObstacles(named);
    if (obstacle !== undefined) {
      throw new ApiError('bad_request', `The node cannot be rented now: ${obstacle.message}`, {
        hint: 'Mark the request once the node is verified and free; until then it stays open.',
      });
    }
    const whose = named === undefined ? 'None of your nodes has' : 'The node does not have';
    throw new ApiError('bad_request', `${whose} free what was asked for`, {
      hint: 'Name a verified node of yours with that GPU type, as many free GPUs, and the price and place that were asked for.',
    });
  }

  return {
    /** The pending ones, oldest first; only counts for a provider without a verified node. */
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

    /** Pending ones that an own node has what it takes for. */
    async fittingTo(
      provider: PortalIdentity,
      executorId: string,
      query: PageQuery,
    ): Promise<RequestPage> {
      const node = await requireOwnNode(db, provider, executorId);
      await requireVerified(db, provider);
      const subject = asOffered(node);
      const pending = await listPendingUpTo(db, subject.gpuCount, MOST_MATCHED);
      const fitting = pending.filter((request) => answers(request, subject));
      return pageOf(fitting.map(toPortalRequest), query);
    },

    /** Closes it, and tells the renter. The same again changes nothing; 409 once another has answered it. */
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
        const nodeId = await nodeFor(tx, provider, request, executorId);
        const change = { fulfilled_executor_id: nodeId, updated_at: clock.now() };
        if (!(await moveMachineRequest(tx, request.id, 'fulfilled', change))) throw answered();
        const now = await requireRequest(tx, requestId);
        await tellFulfilled(tx, now, actor);
        return toPortalRequest(now);
      }),
  };
}

/** Throws 409 where it was another node, or another provider's, that was added. */
async function requireSame(
  tx: Db,
  { providerId }: PortalIdentity,
  { fulfilled_executor_id: nodeId }: MachineRequest,
  executorId: string | null,
): Promise<void> {
  const node = nodeId === null ? undefined : await findExecutor(tx, nodeId);
  const isOwn = node?.provider_id === providerId;
  if (!isOwn || (executorId !== null && executorId !== nodeId)) throw answered();
}

function answered(): ApiError {
  return new ApiError('conflict', 'The machine request is fulfilled already');
}

/** Whether its renter can have it as things stand. What nobody knows of a node, as its country, is for the renter to judge. */
function isAnswer(request: MachineRequest, node: ExecutorEntry): boolean {
  const free = subjectOf(node, node.price_uusd_per_gpu_hour, node.slots_free);
  const asked = {
    ...request,
    country: free.locationJson === null ? null : request.country,
    min_vram_gb: free.gpuMemoryMib === null ? null : request.min_vram_gb,
  };
  return rentalObstacles(node).length === 0 && answers(asked, free);
}

/** All its GPUs, at its price, as measured or else as its provider says. */
function asOffered(node: ExecutorEntry) {
  return subjectOf(node, node.price_uusd_per_gpu_hour, gpuTotalOf(node));
}
