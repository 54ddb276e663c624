/**
 * Attaches a volume to a pod (with the rental or with a reboot) and detaches it when the pod ends, each in the
 * transaction of that event.
 */
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { SubEventType } from '../../delivery/events/event.schemas.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Db, Pod, Volume, VolumeCopy } from '../../platform/database/tables.ts';
import { type Actor, SYSTEM_ACTOR } from '../../platform/identity.ts';
import { findAnyPod } from '../pods/pod-access.ts';
import type { VolumeResponse } from './volume.schemas.ts';
import { GIVE_UP_MS, SAVE_INTERVAL_MS } from './volume.state.ts';
import {
  detachFrom,
  findCopyOf,
  findCopyOfPod,
  findVolume,
  hasLiveCopies,
  insertCopy,
  listAttached,
  listCopiesOf,
  moveCopy,
  updateVolume,
} from './volume.store.ts';
import { volumeResponse } from './volume-response.ts';

type Deps = { clock: Clock; random: Random };

/**
 * A volume that is locked for a rental. `copy` is the copy that the pod mounts. `isReused`: `copy` is an unsaved copy
 * on the same node.
 */
export type VolumeForRent = { volume: Volume; copy: VolumeCopy; isReused: boolean };

/** Columns of a copy without a running operation. */
const FRESH = {
  operation_id: null,
  stage: null,
  percent: 0,
  attempts: 0,
  retry_at: null,
  error_code: null,
  error_message: null,
} as const;

/**
 * Locks the volume until the transaction ends. Throws `volume_not_found`, `forbidden` for another account's volume, and
 * `conflict` while the volume is attached or its unsaved data is on another node.
 */
export async function volumeForRent(
  tx: Db,
  { clock, random }: Deps,
  volumeId: string,
  pod: { id: string; accountId: string; executorId: string },
): Promise<VolumeForRent> {
  const volume = await requireOwnVolume(tx, pod.accountId, volumeId);
  if (volume.attached_pod_id !== null) {
    throw new ApiError('conflict', `The pod ${volume.attached_pod_id} has this volume`, {
      hint: 'Delete this pod, or rent without the volume.',
      details: { attached_pod_id: volume.attached_pod_id },
    });
  }
  const nowMs = clock.now();
  const present = await findCopyOf(tx, volume.id);
  if (present === undefined) {
    const copy: VolumeCopy = {
      ...FRESH,
      id: random.uuid(),
      volume_id: volume.id,
      account_id: volume.account_id,
      pod_id: pod.id,
      executor_id: pod.executorId,
      state: 'restoring',
      source_snapshot_id: volume.snapshot_id,
      seen_at: nowMs,
      created_at: nowMs,
      updated_at: nowMs,
    };
    return { volume, copy, isReused: false };
  }
  if (present.executor_id === pod.executorId && present.state === 'saving') {
    return { volume, copy: { ...present, pod_id: pod.id }, isReused: true };
  }
  throw beingSaved(volume, present);
}

/** Attaches the volume from `volumeForRent` to the pod, which is already stored. */
export async function attachVolume(
  tx: Db,
  deps: Deps,
  { volume, copy, isReused }: VolumeForRent,
  actor: Actor,
): Promise<VolumeResponse> {
  const nowMs = deps.clock.now();
  // For a reused copy: the result of a running save no longer counts, and the next save is due after SAVE_INTERVAL_MS.
  const next = nowMs + SAVE_INTERVAL_MS;
  const change = { ...FRESH, pod_id: copy.pod_id, retry_at: next, updated_at: nowMs };
  if (!isReused) await insertCopy(tx, copy);
  else if (!(await moveCopy(tx, copy.id, 'attached', change))) throw beingSaved(volume, copy);
  await updateVolume(tx, volume.id, { attached_pod_id: copy.pod_id });
  await recordVolumeEvent(tx, deps, copy, { actor, detail: 'volume_attached' });
  const attached = { ...volume, attached_pod_id: copy.pod_id };
  return volumeResponse(attached, isReused ? { ...copy, ...change, state: 'attached' } : copy);
}

/** Attaches a volume to an existing pod without one, and returns the id of its copy. Throws as `volumeForRent` does. */
export async function attachToPod(
  tx: Db,
  deps: Deps,
  { pod, volumeId, actor }: { pod: Pod; volumeId: string; actor: Actor },
): Promise<string> {
  const { id, account_id: accountId, executor_id: executorId } = pod;
  const wanted = await volumeForRent(tx, deps, volumeId, { id, accountId, executorId });
  await attachVolume(tx, deps, wanted, actor);
  return wanted.copy.id;
}

/** Begins to save the volume of a pod that was removed from its node. Repeated calls have no effect. */
export async function detachVolume(tx: Db, { clock }: Deps, podId: string): Promise<void> {
  const found = await findCopyOfPod(tx, podId);
  if (found === undefined) return detachFrom(tx, podId);
  await findVolume(tx, found.volume_id);
  await detachFrom(tx, podId);
  // Reads the copy again, because the previous holder of the lock may have abandoned it.
  const copy = await findCopyOfPod(tx, podId);
  const change = { ...FRESH, updated_at: clock.now() };
  if (copy?.state === 'attached') await moveCopy(tx, copy.id, 'saving', change);
  // The copy was never complete, and the data from which it is restored is still stored.
  if (copy?.state === 'restoring') await moveCopy(tx, copy.id, 'dropping', change);
}

/** Abandons the copy: the volume returns to its last saved state. The caller has locked the volume. */
export async function abandonCopy(
  tx: Db,
  deps: Deps,
  copy: VolumeCopy,
  { actor = SYSTEM_ACTOR, error }: { actor?: Actor; error: string },
): Promise<boolean> {
  const nowMs = deps.clock.now();
  if (!(await moveCopy(tx, copy.id, 'dropping', { ...FRESH, updated_at: nowMs }))) return false;
  await recordVolumeEvent(tx, deps, copy, { actor, detail: 'volume_given_up', error });
  return true;
}

/** Responses for the volumes of these pods, by pod id. */
export async function volumesOfPods(
  db: Db,
  pods: readonly Pick<Pod, 'id' | 'spec_json'>[],
): Promise<ReadonlyMap<string, VolumeResponse>> {
  const ids = pods.filter(hasVolume).map(({ id }) => id);
  const volumes = await listAttached(db, ids);
  const copies = await listCopiesOf(
    db,
    volumes.map(({ id }) => id),
  );
  const copyOf = new Map(copies.map((copy) => [copy.volume_id, copy]));
  return new Map(
    volumes.map((volume) => [
      volume.attached_pod_id ?? '',
      volumeResponse(volume, copyOf.get(volume.id) ?? null),
    ]),
  );
}

/**
 * Returns true if the node has a copy that is not being dropped and whose row was changed within the last GIVE_UP_MS.
 */
export function hasUnsaved(db: Db, executorId: string, nowMs: number): Promise<boolean> {
  return hasLiveCopies(db, executorId, nowMs - GIVE_UP_MS);
}

/**
 * Returns the account's volume, and locks it if called in a transaction. Throws `volume_not_found`, or `forbidden` for
 * another account's volume.
 */
export async function requireOwnVolume(db: Db, accountId: string, id: string): Promise<Volume> {
  const volume = await findVolume(db, id);
  if (volume === undefined || volume.deleted_at !== null) {
    throw new ApiError('volume_not_found', `There is no volume ${id}`);
  }
  if (volume.account_id === accountId) return volume;
  throw new ApiError('forbidden', 'This volume belongs to another account');
}

/** Returns true if the pod's spec has a volume. Most pods have none, so that no query is needed. */
function hasVolume({ spec_json }: Pick<Pod, 'spec_json'>): boolean {
  return (JSON.parse(spec_json) as PodSpecInput).volume !== undefined;
}

function beingSaved(volume: Volume, { executor_id, percent, error_message }: VolumeCopy): ApiError {
  const trouble = error_message === null ? '' : `; ${error_message}`;
  const message = `The volume is being saved on node ${executor_id} (${Math.floor(percent)} %)${trouble}`;
  return new ApiError('conflict', message, {
    hint: `Retry when GET /volumes/${volume.id} returns the status available, or rent on the same node.`,
    details: { volume_id: volume.id, executor_id, progress: percent },
  });
}

type VolumeEvent = {
  actor: Actor;
  detail: 'volume_attached' | 'volume_restored' | 'volume_saved' | 'volume_given_up';
  error?: string;
};

const EVENTS = {
  volume_attached: 'pod-lifecycle',
  volume_restored: 'restore',
  volume_saved: 'backup',
  volume_given_up: 'pod-lifecycle',
} as const;

/**
 * Records an event of the pod that has the volume, or that had it last. `error`: the operation failed. Must run in the
 * transaction of the change.
 */
export async function recordVolumeEvent(
  tx: Db,
  deps: { clock: Clock; random: Random },
  copy: VolumeCopy,
  { actor, detail, error }: VolumeEvent,
): Promise<void> {
  const type = EVENTS[detail];
  const isStatus = type === 'pod-lifecycle';
  const outcome = error === undefined ? 'success' : 'failed';
  const subEventType: SubEventType = `${type}.${isStatus ? 'status' : outcome}`;
  const pod = await findAnyPod(tx, copy.pod_id);
  await recordEvent(tx, deps, {
    accountId: copy.account_id,
    podId: copy.pod_id,
    subEventType,
    actor,
    reason: actor.auth === 'system' ? null : 'user_initiated',
    payload: {
      pod_name: pod?.pod_name ?? null,
      node: copy.executor_id,
      detail: error === undefined || isStatus ? detail : 'volume',
      ...(error === undefined ? {} : { error }),
      volume_id: copy.volume_id,
    },
  });
}
