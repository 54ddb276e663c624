/** Rents GPUs of a node, with every check and every effect in one transaction. */

import { microOrNull } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { AttachSecrets } from '../../accounts/secrets/secret.service.ts';
import type { RestoreRequest } from '../../backups/backup.schemas.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import { fundsReduced } from '../../money/metering/settlement.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { Actor, Caller, UserIdentity } from '../../platform/identity.ts';
import { setDue } from '../../platform/schedule/due.ts';
import { reserveGpus } from '../executors/executor.service.ts';
import { gpuTotalOf } from '../executors/executor-response.ts';
import { newPod } from '../pods/new-pod.ts';
import { insertPod } from '../pods/pod.service.ts';
import { placePodHold } from '../pods/pod-hold.ts';
import { NOTEBOOK_PORT } from '../pods/pod-notebook.ts';
import { setRemovalDue } from '../pods/pod-removal.ts';
import { podResponse } from '../pods/pod-response.ts';
import { podSpecFor } from '../pods/pod-spec.ts';
import { markTemplateRented } from '../templates/template-use.service.ts';
import { attachVolume, volumeForRent } from '../volumes/volume-attachment.ts';
import type { RentExecutorRequest, RentExecutorResponse } from './rental.schemas.ts';
import { checkRental } from './rental-checks.ts';
import { NO_TEMPLATE_ID } from './rental-request.ts';

export type RentRequest = {
  executorId: string;
  body: RentExecutorRequest;
  identity: UserIdentity;
  actor: Actor;
};

/** Notebook token in responses of new pods, which have no notebook server yet. */
const NO_TOKEN = '';

export type RentDeps = {
  clock: Clock;
  random: Random;
  /** Called in the transaction when an account has spent money. */
  afterSpend(tx: Db, accountId: string): Promise<void>;
  beginRestore: BeginRestore;
  launchLimitMs: number;
  attachSecrets: AttachSecrets;
};

/** Queues the restore of a backup into the new pod. Throws ApiError for a backup that the caller cannot restore. */
export type BeginRestore = (
  tx: Db,
  restore: { pod: Pod; caller: Caller; request: RestoreRequest; occasion: 'STARTUP' },
) => Promise<unknown>;

/**
 * Rents in `tx`, or throws the first refusal: first the refusals of `checkRental`, then those of the volume and of the
 * backup.
 */
export async function rentIn(
  tx: Db,
  deps: RentDeps,
  { executorId, body, identity, actor }: RentRequest,
): Promise<RentExecutorResponse> {
  const checked = await checkRental(tx, deps, { executorId, body, identity, actor });
  const { nowMs, executor, inventory, gpus, account, settled, hold } = checked;
  const { template, dockerfile, keys, hours, removalAt, restore, secretNames } = checked;

  const podId = deps.random.uuid();
  const notebookPort = body.enable_jupyter === true ? NOTEBOOK_PORT : null;
  const gpuUuids = await reserveGpus(tx, executor, gpus, podId);
  const volumeId = body.volume_id ?? null;
  const owner = { id: podId, accountId: account.id, executorId: executor.id };
  const wanted = volumeId === null ? null : await volumeForRent(tx, deps, volumeId, owner);
  const spec = podSpecFor({
    template,
    inventory,
    gpuUuids,
    gpuTotal: gpuTotalOf(executor),
    portCount: body.initial_port_count ?? null,
    notebookPort,
    sshPublicKeys: keys.map((key) => key.public_key),
    dockerfile,
    volumeCopyId: wanted?.copy.id ?? null,
    secretNames,
  });
  const pod = await newPod(tx, {
    executor,
    template,
    keys,
    spec,
    notebookPort,
    nowMs,
    launchLimitMs: deps.launchLimitMs,
    columns: {
      id: podId,
      template_id: dockerfile === undefined ? template.id : NO_TEMPLATE_ID,
      account_id: account.id,
      pod_name: body.pod_name,
      gpu_count: gpus,
      hold_id: await placePodHold(tx, podId, settled, hold, { actor, nowMs }),
      removal_at: removalAt,
      termination_hours: hours,
      max_spend_uusd: microOrNull(body.max_spend_usd),
      idle_shutdown_minutes: body.idle_shutdown_minutes ?? null,
      enable_volume_encryption: body.enable_volume_encryption === true ? 1 : 0,
      source: identity.source,
      client_version: identity.clientVersion,
      created_by_api_key_id: actor.apiKeyId,
    },
  });
  await insertPod(tx, pod);
  await deps.attachSecrets(tx, owner, secretNames);
  if (removalAt !== null) await setRemovalDue(tx, podId, removalAt);
  await setDue(tx, 'launch-limit', podId, nowMs + deps.launchLimitMs);
  await markTemplateRented(tx, template, nowMs);
  await fundsReduced(tx, settled, nowMs);
  await deps.afterSpend(tx, account.id);
  await recordEvent(tx, deps, {
    accountId: account.id,
    podId,
    subEventType: 'pod-rent.success',
    actor,
    toStatus: 'PENDING',
    reason: 'user_initiated',
    payload: { pod_name: pod.pod_name, node: executor.id },
  });
  const volume = wanted === null ? null : await attachVolume(tx, deps, wanted, actor);
  if (restore !== null) {
    const caller = { identity, actor };
    await deps.beginRestore(tx, { pod, caller, request: restore, occasion: 'STARTUP' });
  }
  const rented = { ...executor, slots_free: executor.slots_free - gpus };
  return { ...podResponse(pod, rented, nowMs, NO_TOKEN, volume, 0), success: true, pod_id: podId };
}
