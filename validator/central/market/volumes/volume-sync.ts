/**
 * Moves copies of volumes through their states on the nodes. Every step may be repeated, and only the row stores
 * progress.
 */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { VOLUME_MOUNT_PATH, type VolumeView } from '#shared/api/agent/volumes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, type ErrorCode, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { batchedRows } from '../../platform/database/batched.ts';
import type { Database, Pod, VolumeCopy } from '../../platform/database/tables.ts';
import { renterOn } from '../pods/node-renter.ts';
import { findAnyPod } from '../pods/pod-access.ts';
import type { PodsAwaitingVolumes, VolumePasses } from '../pods/pod-sync.ts';
import { acceptsSnapshot, cannotRestore, copyStep, PARTIAL } from './volume.plan.ts';
import { GIVE_UP_MS } from './volume.state.ts';
import { deleteCopy, findVolume, listCopiesOnNodes, listSilentCopies } from './volume.store.ts';
import { createVolumeRecorder, DELAYED } from './volume-recorder.ts';
import type { VolumeRepositories } from './volume-repository.ts';

/** Maximum number of silent copies per pass; the next pass handles further copies. */
const BATCH = 100;
/** Error codes of the agent that a retry cannot resolve. Any other 404 counts as such an error, too. */
const FATAL_CODES: readonly ErrorCode[] = [
  'spec_refused',
  'validation_error',
  'method_not_allowed',
];
const LOST = 'The node has lost the volume, which returned to its last saved state';
const NO_VOLUMES = 'The agent of the node is too old for volumes';
const SILENT = 'The node did not answer for a day, so the volume returned to its last saved state';

export type VolumeSyncDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  repositories: VolumeRepositories;
};

export type VolumeSync = ReturnType<typeof createVolumeSync>;

export function createVolumeSync(deps: VolumeSyncDeps) {
  const { db, clock, random, log, repositories } = deps;
  const record = createVolumeRecorder(deps);
  const copiesOn = batchedRows(
    (ids) => listCopiesOnNodes(db, ids),
    (copy) => copy.executor_id,
  );

  /** Sends the copy's operation to the node. Idempotent, because the operation's id was stored before it is sent. */
  async function send(client: AgentClient, copy: VolumeCopy): Promise<void> {
    const volume = await findVolume(db, copy.volume_id);
    const { id, operation_id: operationId, source_snapshot_id: snapshotId } = copy;
    if (volume === undefined || operationId === null) return;
    const request = {
      operation_id: operationId,
      repository: await repositories.access(volume, 'append'),
      renter: await renterOn(db, copy),
    };
    const view =
      copy.state === 'restoring'
        ? await client.postVolumeRestore(id, {
            ...request,
            source_path: VOLUME_MOUNT_PATH,
            target_path: VOLUME_MOUNT_PATH,
            snapshot_id: snapshotId ?? '',
          })
        : await client.postVolumeBackup(id, {
            ...request,
            path: VOLUME_MOUNT_PATH,
            create_repository: volume.made_at === null,
          });
    await observe(copy, view);
  }

  async function observe(copy: VolumeCopy, view: OperationView): Promise<void> {
    if (view.finished_ms === null) return record.progress(copy, view);
    if (view.stage !== 'done') {
      const { code, message } = view.error ?? {
        code: 'EngineFailed',
        message: 'The operation was ended',
      };
      return record.failed(copy, { code, message });
    }
    if (copy.state === 'restoring') return record.attached(copy);
    const { snapshot_id: snapshotId, quality } = view;
    if (snapshotId !== null && acceptsSnapshot(quality, copy)) {
      return record.saved(copy, snapshotId, view);
    }
    const message = 'Some files of the volume could not be read';
    await record.failed(copy, { code: PARTIAL, message });
  }

  async function begin(client: AgentClient, copy: VolumeCopy): Promise<void> {
    const begun = await record.begun(copy, random.uuid());
    if (begun !== null) await send(client, begun);
  }

  async function pollOperation(client: AgentClient, copy: VolumeCopy): Promise<void> {
    const view = await nullIfNotFound(client.getOperation(copy.operation_id ?? ''));
    await (view === null ? send(client, copy) : observe(copy, view));
  }

  async function put(client: AgentClient, copy: VolumeCopy): Promise<void> {
    const volume = await findVolume(db, copy.volume_id);
    if (volume === undefined) return;
    const { id: volume_id, limit_bytes: size_bytes } = volume;
    await client.putVolume(copy.id, { volume_id, size_bytes });
    if (copy.source_snapshot_id === null) await record.attached(copy);
    else await begin(client, copy);
  }

  async function drop(client: AgentClient, copy: VolumeCopy): Promise<void> {
    const view = await nullIfNotFound(client.deleteVolume(copy.id));
    if (view === null || view.state === 'removed') await deleteCopy(db, copy.id);
  }

  async function perform(
    client: AgentClient,
    copy: VolumeCopy,
    { view, pod }: { view: VolumeView | undefined; pod: Pod | undefined },
  ): Promise<void> {
    await record.seen(copy, view);
    const isPodGoing = pod === undefined || pod.delete_requested_at !== null;
    const facts = { isPresent: view?.state === 'present', isPodGoing, nowMs: clock.now() };
    switch (copyStep(copy, facts)) {
      case 'put':
        return put(client, copy);
      case 'attach':
        return record.attached(copy);
      case 'begin':
        return begin(client, copy);
      case 'poll':
        return pollOperation(client, copy);
      case 'lost':
        return record.abandoned(copy, LOST, { detaches: false });
      case 'drop':
        return drop(client, copy);
      case 'wait':
        return;
    }
  }

  /** Records that the agent is too old for volumes. */
  async function refuse(copy: VolumeCopy): Promise<void> {
    if (copy.state !== 'restoring' || cannotRestore(copy)) return;
    await record.failed(copy, { code: 'Refused', message: NO_VOLUMES });
  }

  /**
   * Records a refusal, or a storage that does not answer. If the agent does not answer, rethrows, which ends the pass.
   */
  async function recordFailure(copy: VolumeCopy, error: unknown): Promise<void> {
    if (error instanceof ApiError && isUnanswered(error)) throw error;
    const message = messageOf(error);
    log.info(
      { volume_id: copy.volume_id, copy_id: copy.id },
      `volume sync step failed: ${message}`,
    );
    if (copy.state === 'dropping') return;
    if (!(error instanceof ApiError)) {
      const unreachable = 'The storage of volumes does not answer';
      return record.failed(copy, { code: 'RepositoryUnreachable', message: unreachable });
    }
    const isFatal = FATAL_CODES.includes(error.code) || error.status === 404;
    await record.failed(copy, { code: isFatal ? 'Refused' : DELAYED, message });
  }

  function podsAwaiting(copies: readonly VolumeCopy[]): PodsAwaitingVolumes {
    const waiting = copies.filter(({ state }) => state === 'restoring');
    return new Map(
      waiting.map((copy) => {
        const isFinal = cannotRestore(copy);
        const trouble = copy.error_message ?? '';
        const message = isFinal
          ? `The volume could not be restored on the node: ${trouble}`
          : `Restoring the volume on the node (${Math.floor(copy.percent)} %) ${trouble}`.trim();
        return [copy.pod_id, { message, isFinal }];
      }),
    );
  }

  const passes: VolumePasses = {
    async pass(client, executorId) {
      const copies = await copiesOn(executorId);
      // Most nodes have no copies.
      if (copies.length === 0) return null;
      const listed = await nullIfNotFound(client.listVolumes());
      const views = new Map(listed?.map((view) => [view.id, view]));
      for (const copy of copies) {
        const pod = await findAnyPod(db, copy.pod_id);
        const facts = { view: views.get(copy.id), pod };
        const done = listed === null ? refuse(copy) : perform(client, copy, facts);
        await done.catch((error: unknown) => recordFailure(copy, error));
      }
      return podsAwaiting(await copiesOn(executorId));
    },

    isWorking: async (executorId) =>
      (await copiesOn(executorId)).some(
        ({ state, operation_id: operationId }) => state !== 'attached' || operationId !== null,
      ),

    hasCopies: async (executorId) => (await copiesOn(executorId)).length > 0,
  };

  return {
    ...passes,

    /** Abandons copies that no node has reported for GIVE_UP_MS, if their pod is ending or has ended. */
    async abandonSilent(): Promise<void> {
      for (const copy of await listSilentCopies(db, clock.now() - GIVE_UP_MS, BATCH)) {
        const pod = await findAnyPod(db, copy.pod_id);
        const isPodGoing = pod === undefined || pod.delete_requested_at !== null;
        if (isPodGoing) await record.abandoned(copy, SILENT, { detaches: true });
      }
    },
  };
}

/** Resolves with null for a 404. */
async function nullIfNotFound<T>(response: Promise<T>): Promise<T | null> {
  return response.catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
}

function isUnanswered(error: ApiError): boolean {
  return error.status >= 500 || error.status === 401 || error.status === 429;
}
