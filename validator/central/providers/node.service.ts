/** A provider's nodes: adding, listing, removing (specification, Provider portal operations). */
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import type { PortalIdentity } from '../auth/identity.ts';
import { lockRow } from '../db/row-lock.ts';
import type { Database, Db, NewExecutor } from '../db/tables.ts';
import {
  type ExecutorEntry,
  insertExecutor,
  pageOfProvider,
  requireExecutor,
  retireExecutor,
} from '../executors/executor.service.ts';
import { UNMEASURED } from '../executors/measured-figures.ts';
import { hasUnsaved } from '../volumes/volume.attach.ts';
import { nodeRow, verificationOf } from './node.row.ts';
import { nodeAddress } from './node-address.ts';
import { nodePriceUusd, requireKnownType } from './node-price.ts';
import type { AddNode, NodeListQuery, PortalNode, Verification } from './provider.schemas.ts';

export type NodesDeps = { db: Database; clock: Clock; random: Random };

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
export function createNodes({ db, clock, random }: NodesDeps) {
  return {
    /** In the caller's transaction. */
    async addIn(tx: Db, caller: PortalIdentity, body: AddNode): Promise<PortalNode> {
      const address = nodeAddress(body.ipAddress);
      const entry = requireKnownType(body.gpuType);
      const price = nodePriceUusd(entry, body.pricePerGpu);
      const row: NewExecutor = {
        ...unchecked(clock.now()),
        id: random.uuid(),
        provider_id: caller.providerId,
        ip_address: address,
        port: body.port,
        gpu_type: body.gpuType,
        gpu_count: body.gpuCount,
        price_uusd_per_gpu_hour: price,
      };
      if (!(await insertExecutor(tx, row))) {
        throw new ApiError('conflict', `There is a node at ${row.ip_address}:${row.port} already`, {
          hint: 'Remove that node first, or give another port.',
        });
      }
      return nodeRow(await requireExecutor(tx, row.id), true);
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
      return { items: items.map((executor) => nodeRow(executor, isOwn(executor))), total };
    },

    get: async (caller: PortalIdentity, id: string): Promise<PortalNode> =>
      nodeRow(await requireOwnNode(db, caller, id), true),

    verification: async (caller: PortalIdentity, id: string): Promise<Verification> =>
      verificationOf(await requireOwnNode(db, caller, id)),

    remove(caller: PortalIdentity, id: string): Promise<PortalNode> {
      return db.transaction().execute(async (tx) => {
        await lockRow(tx, 'executors', id);
        const executor = await requireOwnNode(tx, caller, id);
        if (executor.slots_free < executor.slots_total) {
          throw new ApiError('bad_request', 'There are pods on this node', {
            hint: 'Announce a permanent notice period instead; it ends them in time.',
          });
        }
        if (await hasUnsaved(tx, id, clock.now())) {
          throw new ApiError('bad_request', 'Volumes of renters are being saved on this node', {
            hint: 'Try again in a minute; keep its agent running meanwhile.',
          });
        }
        await retireExecutor(tx, id, clock.now());
        return nodeRow({ ...executor, state: 'removed' }, true);
      });
    },
  };
}

/** What a node is before its first verdict. */
function unchecked(nowMs: number) {
  return {
    min_gpu_count: null,
    collateral_deposited: 0,
    lat: null,
    lon: null,
    location_json: null,
    state: 'queued',
    paused: 0,
    validator_hotkey: null,
    verdict_at: null,
    checks_json: '[]',
    machine_name: null,
    driver_version: null,
    inventory_json: null,
    ...UNMEASURED,
    slots_total: 0,
    slots_free: 0,
    simulated: 0,
    first_verified_at: null,
    last_seen_at: null,
    removed_at: null,
    created_at: nowMs,
    updated_at: nowMs,
  } as const;
}
