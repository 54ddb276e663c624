/** How a pod gets a volume with its rental, and leaves it with its end: each in the transaction of either. */
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Db, Pod, Volume, VolumeCopy } from '../../platform/database/tables.ts';
import { type Actor, SYSTEM_ACTOR } from '../../platform/identity.ts';
import { tellVolume } from './volume.events.ts';
import { volumeRow } from './volume.row.ts';
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

type Deps = { clock: Clock; random: Random };

/** A volume that a rental is about to take; the pod's spec names the copy. */
export type WantedVolume = { volume: Volume; copy: VolumeCopy; isHandedOver: boolean };

/** What there is of a copy that is yet to be filled. */
const FRESH = {
  ...{ operation_id: null, stage: null, percent: 0, attempts: 0, retry_at: null },
  ...{ error_code: null, error_message: null },
} as const;

/**
 * Throws `volume_not_found`, `forbidden` for another account's, and `conflict` while a pod has it, or its data is not
 * saved yet and lies on another node. Holds the volume until the transaction ends.
 */
export async function volumeForRent(
  tx: Db,
  { clock, random }: Deps,
  volumeId: string,
  pod: { id: string; accountId: string; executorId: string },
): Promise<WantedVolume> {
  const volume = await requireOwnVolume(tx, pod.accountId, volumeId);
  if (volume.attached_pod_id !== null) {
    throw new ApiError('conflict', `The pod ${volume.attached_pod_id} has this volume`, {
      hint: 'Delete that pod, or rent without this volume.',
      details: { attached_pod_id: volume.attached_pod_id },
    });
  }
  const nowMs = clock.now();
  const present = await findCopyOf(tx, volume.id);
  if (present === undefined) {
    const copy: VolumeCopy = {
      ...FRESH,
      ...{ id: random.uuid(), volume_id: volume.id, account_id: volume.account_id },
      ...{ pod_id: pod.id, executor_id: pod.executorId, state: 'restoring' },
      source_snapshot_id: volume.snapshot_id,
      ...{ seen_at: nowMs, created_at: nowMs, updated_at: nowMs },
    };
    return { volume, copy, isHandedOver: false };
  }
  if (present.executor_id === pod.executorId && present.state === 'saving') {
    return { volume, copy: { ...present, pod_id: pod.id }, isHandedOver: true };
  }
  throw beingSaved(volume, present);
}

/** Makes it the pod's, which is stored by now; its row as the pod shows it. The caller has it from `volumeForRent`. */
export async function attachVolume(
  tx: Db,
  deps: Deps,
  { volume, copy, isHandedOver }: WantedVolume,
  actor: Actor,
): Promise<VolumeResponse> {
  const nowMs = deps.clock.now();
  // Nobody writes to a copy that is being saved: the pod goes on with it, and the save comes to nothing.
  const next = nowMs + SAVE_INTERVAL_MS;
  const change = { ...FRESH, pod_id: copy.pod_id, retry_at: next, updated_at: nowMs };
  if (!isHandedOver) await insertCopy(tx, copy);
  else if (!(await moveCopy(tx, copy.id, 'attached', change))) throw beingSaved(volume, copy);
  await updateVolume(tx, volume.id, { attached_pod_id: copy.pod_id });
  await tellVolume(tx, deps, copy, { actor, detail: 'volume_attached' });
  const attached = { ...volume, attached_pod_id: copy.pod_id };
  return volumeRow(attached, isHandedOver ? { ...copy, ...change, state: 'attached' } : copy);
}

/** Nothing of the pod is left on its node: what its volume holds is to be saved. Again, it does nothing. */
export async function detachVolume(tx: Db, { clock }: Deps, podId: string): Promise<void> {
  const found = await findCopyOfPod(tx, podId);
  if (found === undefined) return detachFrom(tx, podId);
  await findVolume(tx, found.volume_id);
  await detachFrom(tx, podId);
  // Read again: whoever held the volume may have given it up.
  const copy = await findCopyOfPod(tx, podId);
  const change = { ...FRESH, updated_at: clock.now() };
  if (copy?.state === 'attached') await moveCopy(tx, copy.id, 'saving', change);
  // It was never whole, so that what it was to be filled with is as good.
  if (copy?.state === 'restoring') await moveCopy(tx, copy.id, 'dropping', change);
}

/** The copy counts no more: the volume is what was last saved of it. The caller holds the volume. */
export async function giveUpCopy(
  tx: Db,
  deps: Deps,
  copy: VolumeCopy,
  { actor = SYSTEM_ACTOR, error }: { actor?: Actor; error: string },
): Promise<boolean> {
  const nowMs = deps.clock.now();
  if (!(await moveCopy(tx, copy.id, 'dropping', { ...FRESH, updated_at: nowMs }))) return false;
  await tellVolume(tx, deps, copy, { actor, detail: 'volume_given_up', error });
  return true;
}

/** The rows of the volumes that these pods have, by pod. */
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
      volumeRow(volume, copyOf.get(volume.id) ?? null),
    ]),
  );
}

/** Whether a node has what is not saved yet, for whoever would take it off the market; for a day, whatever keeps it. */
export function hasUnsaved(db: Db, executorId: string, nowMs: number): Promise<boolean> {
  return hasLiveCopies(db, executorId, nowMs - GIVE_UP_MS);
}

/** The account's own. Throws `volume_not_found`, `forbidden`. In a transaction it is held until the end. */
export async function requireOwnVolume(db: Db, accountId: string, id: string): Promise<Volume> {
  const volume = await findVolume(db, id);
  if (volume === undefined || volume.deleted_at !== null) {
    throw new ApiError('volume_not_found', `There is no volume ${id}`);
  }
  if (volume.account_id === accountId) return volume;
  throw new ApiError('forbidden', 'This volume belongs to another account');
}

/** Of most pods the database need not be asked. */
function hasVolume({ spec_json }: Pick<Pod, 'spec_json'>): boolean {
  return (JSON.parse(spec_json) as PodSpecInput).volume !== undefined;
}

function beingSaved(volume: Volume, { executor_id, percent, error_message }: VolumeCopy): ApiError {
  const trouble = error_message === null ? '' : `; ${error_message}`;
  const message = `The volume is being saved on node ${executor_id} (${Math.floor(percent)} %)${trouble}`;
  return new ApiError('conflict', message, {
    hint: `Try again once GET /volumes/${volume.id} says available, or rent on that node.`,
    details: { volume_id: volume.id, executor_id, progress: percent },
  });
}
