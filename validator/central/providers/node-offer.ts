/** Adds, prices, resizes and removes a node for its provider. Every function runs in the caller's transaction. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { recheckDeposit } from '../market/collateral/collateral.service.ts';
import {
  countUnproven,
  dropFreeGpus,
  type ExecutorEntry,
  findExecutorAt,
  insertExecutor,
  requireExecutor,
  retireExecutor,
  updateExecutor,
} from '../market/executors/executor.service.ts';
import { UNMEASURED } from '../market/executors/node-figures.ts';
import { hasUnsaved } from '../market/volumes/volume-attachment.ts';
import type { Db, NewExecutor } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import type { AddNode } from './node.schemas.ts';
import { type AllowedPlaces, nodeAddress } from './node-address.ts';
import { isPriceAllowed, nodePriceUusd, requireKnownType, requireTypeName } from './node-price.ts';

export type OfferDeps = { clock: Clock; random: Random; nodePlaces: AllowedPlaces };

/**
 * Maximum number of a provider's nodes that have never passed the checks. It limits the addresses that the validator
 * contacts for the provider.
 */
const MAX_UNPROVEN = 20;
/** Time after which another provider may take over the address of a node that has never passed the checks. */
const UNPROVEN_CLAIM_MS = 60 * 60 * 1000;

/**
 * Adds a node in state `queued`; the validator then checks the node. The caller has locked the provider's row. Throws
 * 400 for an invalid type, price or address, and if too many nodes of the provider have never passed the checks. Throws
 * 409 if the address is in use.
 */
export async function addNode(
  tx: Db,
  deps: OfferDeps,
  providerId: string,
  body: AddNode,
): Promise<ExecutorEntry> {
  const { clock, random } = deps;
  await requireFewUnproven(tx, providerId);
  const address = nodeAddress(body.ipAddress, deps.nodePlaces);
  const entry = requireKnownType(body.gpuType);
  const row: NewExecutor = {
    ...unchecked(clock.now()),
    id: random.uuid(),
    provider_id: providerId,
    ip_address: address,
    port: body.port,
    gpu_type: requireTypeName(body.gpuType),
    gpu_count: body.gpuCount,
    price_uusd_per_gpu_hour: nodePriceUusd(entry, body.pricePerGpu),
  };
  const isInserted =
    (await insertExecutor(tx, row)) ||
    ((await removeStaleClaim(tx, deps, row)) && (await insertExecutor(tx, row)));
  if (isInserted) {
    await recheckDeposit(tx, row.id);
    return requireExecutor(tx, row.id);
  }
  throw new ApiError('conflict', `A node at ${row.ip_address}:${row.port} already exists`, {
    hint: 'Remove that node first, or use another port. If it belongs to another provider and never passes the checks, its address is released after an hour.',
  });
}

async function requireFewUnproven(tx: Db, providerId: string): Promise<void> {
  if ((await countUnproven(tx, providerId)) < MAX_UNPROVEN) return;
  throw new ApiError(
    'bad_request',
    `A provider has at most ${MAX_UNPROVEN} nodes that never passed the checks`,
    { hint: 'Wait until some of them pass, or remove nodes that cannot pass.' },
  );
}

/**
 * Removes a node of another provider at that address if the node is old and has never passed the checks. Returns false
 * if a node remains at the address.
 */
async function removeStaleClaim(tx: Db, deps: OfferDeps, wanted: NewExecutor): Promise<boolean> {
  const claimant = () => findExecutorAt(tx, wanted.ip_address, wanted.port);
  await lockRow(tx, 'executors', (await claimant())?.id ?? wanted.id);
  const claim = await claimant();
  if (claim === undefined) return true;
  const isOld = wanted.created_at - claim.created_at >= UNPROVEN_CLAIM_MS;
  if (claim.provider_id === wanted.provider_id || claim.first_verified_at !== null || !isOld) {
    return false;
  }
  await removeNode(tx, deps, claim.id);
  return true;
}

/** Sets the price of future rentals; null sets the reference price. Returns false if the price does not change. */
export async function changePrice(
  tx: Db,
  { clock }: OfferDeps,
  node: ExecutorEntry,
  priceUsd: number | null,
): Promise<boolean> {
  const price = nodePriceUusd(requireKnownType(node.gpu_type), priceUsd);
  if (price === node.price_uusd_per_gpu_hour) return false;
  await updateExecutor(tx, node.id, {
    price_uusd_per_gpu_hour: price,
    updated_at: clock.now(),
  });
  return true;
}

/**
 * Changes the GPU type or count. The node accepts no rentals until the validator has verified the new offer; current
 * rentals continue. If the price is outside the band of the new type, it is set to the type's reference price. Returns
 * false if neither type nor count changes.
 */
export async function changeGpus(
  tx: Db,
  { clock }: OfferDeps,
  node: ExecutorEntry,
  offer: { gpuType: string; gpuCount: number },
): Promise<boolean> {
  const { gpuCount } = offer;
  const gpuType = requireTypeName(offer.gpuType);
  if (gpuType === node.gpu_type && gpuCount === node.gpu_count) return false;
  const entry = requireKnownType(gpuType);
  const allocated = node.slots_total - node.slots_free;
  if (gpuCount < allocated) {
    throw new ApiError('bad_request', `Pods hold ${allocated} GPUs of this node`, {
      hint: `Offer ${allocated} GPUs or more, or wait until the pods have ended.`,
    });
  }
  if (node.min_gpu_count !== null && gpuCount < node.min_gpu_count) {
    throw new ApiError(
      'bad_request',
      `Rentals of the node require at least ${node.min_gpu_count} GPUs`,
      {
        hint: 'Lower or clear the minimum first.',
      },
    );
  }
  const nowMs = clock.now();
  const price = node.price_uusd_per_gpu_hour;
  await updateExecutor(tx, node.id, {
    gpu_type: gpuType,
    gpu_count: gpuCount,
    price_uusd_per_gpu_hour: isPriceAllowed(entry, price) ? price : nodePriceUusd(entry, null),
    state: 'queued',
    // The clock of the validator may be ahead of the clock of this server.
    offer_changed_at: Math.max(nowMs, node.verdict_at ?? 0),
    updated_at: nowMs,
  });
  await dropFreeGpus(tx, node.id);
  return true;
}

/** Returns an error if the node cannot be removed now, otherwise null. */
export async function removalObstacle(
  tx: Db,
  { clock }: OfferDeps,
  node: ExecutorEntry,
): Promise<ApiError | null> {
  if (node.slots_free < node.slots_total) {
    return new ApiError('bad_request', 'This node has pods', {
      hint: 'Announce a notice period with permanent_removal instead. The pods end at the announced time.',
    });
  }
  if (!(await hasUnsaved(tx, node.id, clock.now()))) return null;
  return new ApiError('bad_request', 'Volumes of renters are being saved on this node', {
    hint: 'Keep the agent running and try again in a minute.',
  });
}

/** Removes the node permanently. The caller must have checked `removalObstacle`. */
export async function removeNode(tx: Db, { clock }: OfferDeps, id: string): Promise<void> {
  await retireExecutor(tx, id, clock.now());
}

/** Returns the column values of a node before its first verdict. */
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

type Splittable = Pick<ExecutorEntry, 'gpu_count' | 'can_split'>;

/**
 * Throws 400 if the minimum exceeds the number of GPUs of the node, or if the minimum would split a node that cannot be
 * split. Splitting requires a GPU runtime that passes single GPUs to containers, and a disk limit for each pod.
 */
export function requireMinimum({ gpu_count: total, can_split }: Splittable, minimum: number): void {
  if (minimum > total) {
    throw new ApiError('bad_request', `The node has ${total} GPUs`, {
      hint: `Use a minimum of 1 to ${total}.`,
    });
  }
  if (minimum === total || can_split === 1) return;
  if (can_split === null) {
    throw new ApiError(
      'gpu_split_not_allowed',
      'The validator has not yet checked whether the node can be split',
      {
        hint: 'Wait for the first check of the node.',
      },
    );
  }
  throw new ApiError('gpu_split_not_allowed', 'The node cannot be split between renters', {
    hint: 'Configure the GPU runtime and disk limits for pods; `npm run agent -- doctor` lists what is missing.',
  });
}

/** Throws 400 while a pod uses only a part of the node. */
export function requireNoPartialPods(
  { gpu_count: total }: Pick<ExecutorEntry, 'gpu_count'>,
  pods: readonly { gpu_count: number }[],
): void {
  const parts = pods.filter((pod) => pod.gpu_count < total).length;
  if (parts === 0) return;
  throw new ApiError('bad_request', `${parts} pods use a part of this node`, {
    hint: 'Clear the minimum after they have ended.',
  });
}
