/** Operations of renters on volumes. Requests change rows; the sync applies them on the nodes. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { Database, Db, Volume, VolumeCopy } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import type { Caller, UserIdentity } from '../../platform/identity.ts';
import { findAnyPod } from '../pods/pod-access.ts';
import type {
  VolumeRequest,
  VolumeResponse,
  VolumeStatsResponse,
  VolumeUpdate,
} from './volume.schemas.ts';
import {
  findCopyOf,
  insertVolume,
  listCopiesOf,
  listVolumes,
  moveCopy,
  updateVolume,
} from './volume.store.ts';
import { abandonCopy, requireOwnVolume } from './volume-attachment.ts';
import type { VolumeRepositories } from './volume-repository.ts';
import { volumeResponse, volumeStats } from './volume-response.ts';

/** Maximum number of volumes per account, without deleted volumes. */
const MAX_PER_ACCOUNT = 50;

export type Volumes = ReturnType<typeof createVolumes>;

/** Methods with `tx` run in this transaction. */
export function createVolumes(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  repositories: VolumeRepositories;
  /** Size limit of a new volume. */
  limitBytes: number;
  /** Queues an immediate sync of this executor. */
  wake(executorId: string): void;
}) {
  const { db, clock, random, repositories } = deps;

  async function ownWithCopy(handle: Db, { accountId }: UserIdentity, id: string) {
    const volume = await requireOwnVolume(handle, accountId, id);
    return { volume, copy: (await findCopyOf(handle, id)) ?? null };
  }

  return {
    /** Oldest first. */
    async list({ accountId }: UserIdentity): Promise<VolumeResponse[]> {
      const volumes = await listVolumes(db, accountId);
      const copies = await listCopiesOf(
        db,
        volumes.map(({ id }) => id),
      );
      const copyOf = new Map(copies.map((copy) => [copy.volume_id, copy]));
      return volumes.map((volume) => volumeResponse(volume, copyOf.get(volume.id) ?? null));
    },

    async get(caller: UserIdentity, id: string): Promise<VolumeResponse> {
      const { volume, copy } = await ownWithCopy(db, caller, id);
      return volumeResponse(volume, copy);
    },

    async stats(caller: UserIdentity, id: string): Promise<VolumeStatsResponse> {
      const { volume, copy } = await ownWithCopy(db, caller, id);
      return volumeStats(volume, copy, clock.now());
    },

    /** Creates an empty volume. Throws `bad_request` if the account has too many volumes. */
    async createIn(tx: Db, caller: UserIdentity, body: VolumeRequest): Promise<VolumeResponse> {
      repositories.requireStorage();
      const { accountId } = caller;
      await lockAccount(tx, caller);
      if ((await listVolumes(tx, accountId)).length >= MAX_PER_ACCOUNT) {
        throw new ApiError('bad_request', `An account has at most ${MAX_PER_ACCOUNT} volumes`, {
          hint: 'Delete a volume that is no longer used.',
        });
      }
      const nowMs = clock.now();
      const id = random.uuid();
      const volume: Volume = {
        id,
        account_id: accountId,
        name: body.name,
        description: body.description ?? '',
        limit_bytes: deps.limitBytes,
        attached_pod_id: null,
        bytes: 0,
        files: 0,
        measured_at: null,
        password_sealed: repositories.newPassword(id),
        made_at: null,
        snapshot_id: null,
        saved_at: null,
        has_waste: 0,
        cleaning_boot_id: null,
        created_at: nowMs,
        updated_at: nowMs,
        deleted_at: null,
      };
      await insertVolume(tx, volume);
      return volumeResponse(volume, null);
    },

    /** Changes the name, the description or both. Throws `bad_request` if the body has neither. */
    update(caller: UserIdentity, id: string, body: VolumeUpdate): Promise<VolumeResponse> {
      return db.transaction().execute(async (tx) => {
        const { volume, copy } = await ownWithCopy(tx, caller, id);
        const { name = volume.name, description = volume.description } = body;
        if (body.name === undefined && body.description === undefined) {
          throw new ApiError('bad_request', 'The request contains no member to change', {
            hint: 'Send name, description or both.',
          });
        }
        const change = { name, description, updated_at: clock.now() };
        await updateVolume(tx, id, change);
        return volumeResponse({ ...volume, ...change }, copy);
      });
    },

    /**
     * Deletes the volume and returns its last state; its data is removed later. Throws `bad_request` while the volume
     * is attached.
     */
    async remove(caller: UserIdentity, id: string): Promise<VolumeResponse> {
      const { volume, copy } = await moneyTransaction({ db, clock, random }, async (tx) => {
        const found = await ownWithCopy(tx, caller, id);
        const { attached_pod_id: podId } = found.volume;
        if (podId !== null) {
          throw new ApiError('bad_request', `The pod ${podId} has this volume`, {
            hint: 'Delete the pod first.',
          });
        }
        await discard(tx, found.volume, found.copy, clock.now());
        return found;
      });
      if (copy !== null) deps.wake(copy.executor_id);
      return volumeResponse(volume, null);
    },

    /**
     * Discards the unsaved copy on a node that may never respond again. The volume returns to its last saved state.
     * Throws `bad_request` without such a copy, or while a pod that is not being deleted has the volume.
     */
    async release({ identity, actor }: Caller, id: string): Promise<VolumeResponse> {
      const { volume, copy } = await moneyTransaction({ db, clock, random }, async (tx) => {
        const found = await ownWithCopy(tx, identity, id);
        if (found.copy === null) {
          throw new ApiError('bad_request', 'No node has unsaved data of this volume');
        }
        await refuseInUse(tx, found.volume);
        const error = 'The unsaved data was abandoned on request';
        await abandonCopy(tx, { clock, random }, found.copy, { actor, error });
        await updateVolume(tx, id, { attached_pod_id: null });
        return { volume: { ...found.volume, attached_pod_id: null }, copy: found.copy };
      });
      deps.wake(copy.executor_id);
      return volumeResponse(volume, null);
    },
  };
}

/** Deletes an account's volumes. Attached volumes are detached; their pods are being deleted. */
export async function deleteVolumesOf(tx: Db, accountId: string, nowMs: number): Promise<void> {
  for (const { id } of await listVolumes(tx, accountId)) {
    const volume = await requireOwnVolume(tx, accountId, id);
    await discard(tx, volume, (await findCopyOf(tx, id)) ?? null, nowMs);
    await updateVolume(tx, id, { attached_pod_id: null, name: '', description: '' });
  }
}

async function refuseInUse(tx: Db, { attached_pod_id: podId }: Volume): Promise<void> {
  const pod = podId === null ? undefined : await findAnyPod(tx, podId);
  if (pod === undefined || pod.delete_requested_at !== null || pod.ended_at !== null) return;
  throw new ApiError('bad_request', `The pod ${pod.id} has this volume`, {
    hint: 'Delete the pod first.',
  });
}

async function discard(tx: Db, { id }: Volume, copy: VolumeCopy | null, nowMs: number) {
  await updateVolume(tx, id, { deleted_at: nowMs });
  if (copy !== null) await moveCopy(tx, copy.id, 'dropping', { updated_at: nowMs });
}
