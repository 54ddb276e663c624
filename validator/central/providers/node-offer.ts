/** What becomes of a node's row when its provider adds, prices, resizes or removes it; each in the caller's transaction. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
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
import { type NodePlaces, nodeAddress } from './node-address.ts';
import { nodePriceUusd, priceWithin, requireKnownType, requireTypeName } from './node-price.ts';

export type OfferDeps = { clock: Clock; random: Random; nodePlaces: NodePlaces };

/** Of one provider: more are added as these pass. Nobody has the validator call at addresses without end. */
const MAX_UNPROVEN = 20;
/** A node that the validator has never passed proves no claim to its address: another provider's takes it after so long. */
const UNPROVEN_CLAIM_MS = 60 * 60 * 1000;

/** Queued for its first check; the caller holds the provider's row. Throws 400 for a type, price or address that cannot be and with too many nodes that never passed, 409 for an address that is taken. */
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
  if (await insertExecutor(tx, row)) return requireExecutor(tx, row.id);
  const hasGivenWay = await endUnprovenClaim(tx, deps, row);
  if (hasGivenWay && (await insertExecutor(tx, row))) return requireExecutor(tx, row.id);
  throw new ApiError('conflict', `There is a node at ${row.ip_address}:${row.port} already`, {
    hint: 'Remove that node first, or give another port. Another provider’s that never passed the checks gives way after an hour.',
  });
}

async function requireFewUnproven(tx: Db, providerId: string): Promise<void> {
  if ((await countUnproven(tx, providerId)) < MAX_UNPROVEN) return;
  throw new ApiError(
    'bad_request',
    `A provider has at most ${MAX_UNPROVEN} nodes that never passed the checks`,
    { hint: 'Wait until some of them have passed, or remove those that will not.' },
  );
}

/** Removes what another provider has claimed long ago at that address and never shown; false when what is there stays. */
async function endUnprovenClaim(tx: Db, deps: OfferDeps, wanted: NewExecutor): Promise<boolean> {
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

/** Of rentals from now on; null: the reference price. False when it is that already. */
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
 * Another offer is another claim: nothing of it is rented out before the validator has passed it, and what is rented
 * goes on. A price outside the band of a new type becomes its reference price. False when nothing changes.
 */
export async function changeGpus(
  tx: Db,
  { clock }: OfferDeps,
  node: ExecutorEntry,
  wish: { gpuType: string; gpuCount: number },
): Promise<boolean> {
  const { gpuCount } = wish;
  const gpuType = requireTypeName(wish.gpuType);
  if (gpuType === node.gpu_type && gpuCount === node.gpu_count) return false;
  const entry = requireKnownType(gpuType);
  const allocated = node.slots_total - node.slots_free;
  if (gpuCount < allocated) {
    throw new ApiError('bad_request', `Pods hold ${allocated} GPUs of this node`, {
      hint: `Offer ${allocated} GPUs or more, or wait until the pods have ended.`,
    });
  }
  if (node.min_gpu_count !== null && gpuCount < node.min_gpu_count) {
    throw new ApiError('bad_request', `The node rents ${node.min_gpu_count} GPUs or more`, {
      hint: 'Lower or clear the minimum first.',
    });
  }
  const nowMs = clock.now();
  const price = node.price_uusd_per_gpu_hour;
  await updateExecutor(tx, node.id, {
    gpu_type: gpuType,
    gpu_count: gpuCount,
    price_uusd_per_gpu_hour: priceWithin(entry, price) ? price : nodePriceUusd(entry, null),
    state: 'queued',
    // By the clock of whoever gave the last verdict it may have been later.
    offer_changed_at: Math.max(nowMs, node.verdict_at ?? 0),
    updated_at: nowMs,
  });
  await dropFreeGpus(tx, node.id);
  return true;
}

/** Why the node cannot be removed now; null when it can. */
export async function removalObstacle(
  tx: Db,
  { clock }: OfferDeps,
  node: ExecutorEntry,
): Promise<ApiError | null> {
  if (node.slots_free < node.slots_total) {
    return new ApiError('bad_request', 'There are pods on this node', {
      hint: 'Announce a permanent notice period instead; it ends them in time.',
    });
  }
  if (!(await hasUnsaved(tx, node.id, clock.now()))) return null;
  return new ApiError('bad_request', 'Volumes of renters are being saved on this node', {
    hint: 'Try again in a minute; keep its agent running meanwhile.',
  });
}

/** For good. The caller has asked for obstacles. */
export async function removeNode(tx: Db, { clock }: OfferDeps, id: string): Promise<void> {
  await retireExecutor(tx, id, clock.now());
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
