/** Renting: every check and every effect in one transaction (design, "Rent"; marketplace reference 1.1). */
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import { accountOf } from '../accounts/account.service.ts';
import type { Actor, UserIdentity } from '../auth/identity.ts';
import { requireFloor } from '../balance/balance.service.ts';
import type { Account, Db, Pod, Template } from '../db/tables.ts';
import { recordEvent } from '../events/event.service.ts';
import { gpuTotalOf, inventoryOf } from '../executors/executor.row.ts';
import { type ExecutorEntry, requireExecutor, reserveGpus } from '../executors/executor.service.ts';
import { podRow } from '../pods/pod.row.ts';
import type { PodSshKey } from '../pods/pod.schemas.ts';
import { insertPod } from '../pods/pod.service.ts';
import { wirePhase } from '../pods/pod.state.ts';
import { removalAfter } from '../pods/removal-time.ts';
import { listForAccount } from '../ssh-keys/ssh-key.service.ts';
import {
  markTemplateRented,
  templateForRent,
  toTemplateRow,
} from '../templates/template.service.ts';
import { chooseGpuCount } from './gpu-choice.ts';
import { podSpecFor } from './pod-spec.ts';
import type { RentExecutorRequest, RentExecutorResponse } from './rental.schemas.ts';
import { chosenKeys } from './rental-keys.ts';
import { refuseUnavailable } from './unavailable-fields.ts';

export type RentRequest = {
  executorId: string;
  body: RentExecutorRequest;
  identity: UserIdentity;
  actor: Actor;
};

export type RentDeps = { clock: Clock; random: Random };

/** Rents in `tx`, or throws the first refusal in the order that clients are promised. */
export async function rentIn(
  tx: Db,
  deps: RentDeps,
  { executorId, body, identity, actor }: RentRequest,
): Promise<RentExecutorResponse> {
  refuseUnavailable(body);
  const nowMs = deps.clock.now();
  const executor = await requireRentable(tx, executorId);
  const total = gpuTotalOf(executor);
  const gpus = chooseGpuCount(body.gpu_count ?? null, {
    total,
    free: executor.slots_free,
    minimum: executor.min_gpu_count,
    canSplit: canSplit(executor),
  });
  const account = await accountOf(tx, identity);
  const template = await templateForRent(
    tx,
    account.id,
    body.template_id ?? null,
    account.default_template_id,
  );
  const keys = chosenKeys(body.user_public_key, await listForAccount(tx, account.id));
  const hours = body.termination_hours ?? null;
  const removalAt = hours === null ? null : removalAfter(hours, nowMs);
  requireVerified(account);
  const price = executor.price_uusd_per_gpu_hour;
  const hold = await requireFloor(tx, account.id, price, gpus);

  const podId = deps.random.uuid();
  const gpuUuids = await reserveGpus(tx, executor.id, gpus, podId);
  const spec = podSpecFor({
    template,
    inventory: requireInventory(executor),
    gpuUuids,
    gpuTotal: total,
    portCount: body.initial_port_count ?? null,
    sshPublicKeys: keys.map((key) => key.public_key),
  });
  const pod: Pod = {
    ...newPod(executor, template, keys, nowMs),
    id: podId,
    account_id: account.id,
    pod_name: body.pod_name,
    gpu_count: gpus,
    hold_uusd: hold,
    spec_json: JSON.stringify(spec),
    removal_at: removalAt,
    termination_hours: hours,
    source: identity.source,
    client_version: identity.clientVersion,
    created_by_api_key_id: actor.apiKeyId,
  };
  await insertPod(tx, pod);
  await markTemplateRented(tx, template, nowMs);
  await recordEvent(tx, deps, {
    accountId: account.id,
    podId,
    eventType: 'pod-rent',
    subEventType: 'pod-rent.success',
    actor,
    toStatus: 'PENDING',
    payload: { pod_name: pod.pod_name, node: executor.id },
  });
  const taken = { ...executor, slots_free: executor.slots_free - gpus };
  return { ...podRow(pod, taken, nowMs), success: true, pod_id: podId };
}

/** On the market, as far as its provider and its validator are concerned. */
async function requireRentable(tx: Db, id: string): Promise<ExecutorEntry> {
  const executor = await requireExecutor(tx, id);
  if (executor.banned_at !== null) {
    throw new ApiError('provider_banned', 'The provider of this node is banned');
  }
  if (executor.paused === 1 || executor.opted_in === 0) {
    throw new ApiError('node_paused_by_provider', 'The provider of this node takes no new rentals');
  }
  if (executor.state !== 'verified') {
    throw new ApiError('node_not_verified', 'The validator has not passed this node');
  }
  return executor;
}

/** Its GPUs can go to several pods at once wherever the engine hands out single GPUs. */
function canSplit(executor: ExecutorEntry): boolean {
  const inventory = inventoryOf(executor);
  return inventory !== null && (inventory.docker.gpu_runtime || inventory.simulated);
}

function requireInventory(executor: ExecutorEntry) {
  const inventory = inventoryOf(executor);
  if (inventory !== null) return inventory;
  throw new ApiError('node_unavailable', 'The hardware of this node is not known');
}

function requireVerified(account: Account): void {
  if (account.email_verified_at !== null) return;
  throw new ApiError('email_not_verified', 'Confirm your e-mail address before renting');
}

/** Everything about a new pod that does not depend on the request. */
function newPod(
  executor: ExecutorEntry,
  template: Template,
  keys: readonly PodSshKey[],
  nowMs: number,
) {
  return {
    executor_id: executor.id,
    template_id: template.id,
    template_json: JSON.stringify(toTemplateRow(template)),
    price_uusd_per_gpu_hour: executor.price_uusd_per_gpu_hour,
    state: 'pending',
    phase: wirePhase('pending') ?? '',
    reason_code: null,
    message: '',
    generation: 1,
    acknowledged_generation: 0,
    reboots_requested: 0,
    reboots_acknowledged: 0,
    ports_json: '{}',
    ssh_keys_json: JSON.stringify(keys),
    is_favorite: 0 as const,
    first_running_at: null,
    seen_at: null,
    delete_requested_at: null,
    ended_at: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
}
