/**
 * Persistent volumes, which outlive pods. On a host, each is a named volume of the engine. The engine's list is
 * authoritative, so a lost store loses no data; the table has the facts that the engine does not store.
 */
import { access, constants } from 'node:fs/promises';
import { MAX_AGE_MS } from '#shared/api/agent/bounds.ts';
import type { OperationView } from '#shared/api/agent/operations.ts';
import {
  VOLUME_MOUNT_PATH,
  VolumeCopyId,
  type VolumePut,
  type VolumeView,
} from '#shared/api/agent/volumes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import {
  type ContainerEngine,
  EngineError,
  LABELS,
  type VolumeMount,
  type VolumeState,
} from '../engine/engine.ts';
import { executorLabels } from '../engine/labels.ts';
import type { DataRoot } from './pod-volumes.ts';
import type { VolumeCopyRow, VolumeStore } from './volume.store.ts';

const NAME_PREFIX = 'podwright-volume-';
const UNREADABLE =
  "Volumes need an agent that runs as root on its engine's host: this agent cannot back them up";

/** The volume that a pod should mount is not on this host, or cannot be mounted at present. */
export class VolumeMissing extends Error {
  override name = 'VolumeMissing';
}

/** Operations of the backup module on volumes. */
export type VolumeOperations = {
  /** Kind of the unfinished operation on the volume; null if there is none. */
  activeKind(id: string): OperationView['kind'] | null;
  /** Bytes that the last restore wrote if it was the volume's last operation, otherwise 0. */
  restoredBytes(id: string): number;
};

/** Measured content of a volume. */
export type Measure = { bytes: number; files: number; atMs: number };

/** Name of the volume in the engine. */
export function volumeCopyName(id: string): string {
  return `${NAME_PREFIX}${id}`;
}

export type VolumeService = ReturnType<typeof createVolumeService>;

export function createVolumeService(deps: {
  executorId: string;
  engine: Pick<ContainerEngine, 'createVolume' | 'listVolumes' | 'removeVolume'>;
  store: VolumeStore;
  /** Ids of pods that are not removed and have the volume or will get it, oldest first. */
  podsWith(id: string): readonly string[];
  operations: VolumeOperations;
  clock: Clock;
  log: Log;
}) {
  const { engine, store, clock, log } = deps;
  const labels = { ...executorLabels(deps.executorId), [LABELS.kind]: 'volume' };
  const measures = new Map<string, Measure>();

  function viewOf(row: VolumeCopyRow, state?: VolumeView['state']): VolumeView {
    const { id, volume_id, size_bytes } = row;
    const measure = measures.get(id);
    const ageMs = measure === undefined ? null : Math.max(0, clock.now() - measure.atMs);
    return {
      id,
      volume_id,
      size_bytes,
      state: state ?? (row.removing ? 'removing' : 'present'),
      bytes: measure?.bytes ?? null,
      files: measure?.files ?? null,
      measured_age_ms: ageMs === null ? null : Math.min(ageMs, MAX_AGE_MS),
    };
  }

  /** Lists this executor's volumes by id and updates the table to match. Rejects with EngineError. */
  async function present(): Promise<Map<string, VolumeState>> {
    const before = store.list();
    const states = new Map<string, VolumeState>();
    for (const state of await engine.listVolumes(labels)) {
      const id = idOf(state);
      if (id !== null) states.set(id, state);
    }
    for (const { id, volume_id } of before) {
      if (states.has(id)) continue;
      log.warn({ copy_id: id, volume_id }, 'volume has vanished from the engine');
      forget(id);
    }
    for (const [id, state] of states) if (store.get(id) === null) adopt(id, state);
    return states;
  }

  /** Inserts a row for a volume whose row was lost or was never written. */
  function adopt(id: string, found: VolumeState): void {
    const volume_id = found.labels[LABELS.volume] ?? '';
    const size_bytes = Number(found.labels[LABELS.volumeLimit]);
    if (!VolumeCopyId.safeParse(volume_id).success || !(size_bytes > 0)) return;
    store.put({ id, volume_id, size_bytes, removing: false });
  }

  const isMounted = (id: string) => deps.podsWith(id).length > 0;

  function forget(id: string): void {
    store.remove(id);
    measures.delete(id);
  }

  function require(id: string): VolumeCopyRow {
    const row = store.get(id);
    if (row !== null) return row;
    throw new ApiError('not_found', 'There is no such copy of a volume on this host');
  }

  /** Removes the volume. Returns null while an operation uses it, and if the engine did not remove it. */
  async function removeNow(row: VolumeCopyRow): Promise<VolumeView | null> {
    if (deps.operations.activeKind(row.id) !== null) return null;
    try {
      await engine.removeVolume(volumeCopyName(row.id));
    } catch (error) {
      if (error instanceof EngineError) return null;
      throw error;
    }
    forget(row.id);
    return viewOf(row, 'removed');
  }

  return {
    /** While the engine does not answer, returns the last known volumes. */
    async list(): Promise<VolumeView[]> {
      await present().catch((error: unknown) => {
        if (!(error instanceof EngineError)) throw error;
      });
      return store.list().map((row) => viewOf(row));
    },

    /** Creates an empty volume unless it exists. Throws `spec_refused` if it could not be backed up, and `conflict`. */
    async put(id: string, { volume_id, size_bytes }: VolumePut): Promise<VolumeView> {
      const known = store.get(id);
      if (known?.removing || (known !== null && known.volume_id !== volume_id)) {
        throw new ApiError('conflict', 'This copy is being removed, or is of another volume');
      }
      const limit = { [LABELS.volume]: volume_id, [LABELS.volumeLimit]: String(size_bytes) };
      try {
        const existing = (await present()).get(id);
        if (existing === undefined) {
          await engine.createVolume(volumeCopyName(id), { ...labels, ...limit });
          measures.set(id, { bytes: 0, files: 0, atMs: clock.now() });
        }
        const created = (await present()).get(id);
        await access(created?.hostPath ?? '', constants.R_OK | constants.W_OK | constants.X_OK);
      } catch (cause) {
        if (!(cause instanceof EngineError)) {
          await removeNow({ id, volume_id, size_bytes, removing: true });
          throw new ApiError('spec_refused', UNREADABLE, { cause });
        }
        const message = `The container engine could not create the volume: ${cause.message}`;
        throw new ApiError('conflict', message, { cause });
      }
      const row = { id, volume_id, size_bytes, removing: false };
      store.put(row);
      return viewOf(row);
    },

    /**
     * Removes the volume with its data. If the volume cannot be removed now, for example because an operation
     * uses it, marks it for removal; the caller repeats the call. Throws `not_found`, and `conflict` while a
     * pod has the volume.
     */
    async remove(id: string): Promise<VolumeView> {
      const row = require(id);
      if (isMounted(id)) throw new ApiError('conflict', 'A pod has this volume');
      const removing = { ...row, removing: true };
      store.put(removing);
      return (await removeNow(removing)) ?? viewOf(removing);
    },

    /** Throws `not_found`, and `conflict` if it is being removed or a pod has the volume that a restore would replace. */
    checkFree(id: string, kind: 'backup' | 'restore'): void {
      if (require(id).removing) throw new ApiError('conflict', 'This copy is being removed');
      if (kind === 'restore' && isMounted(id)) {
        throw new ApiError('conflict', 'A pod has this volume');
      }
    },

    /** Returns true if a volume with this id is on this host. */
    knows: (id: string): boolean => store.get(id) !== null,
    isGone: (id: string): boolean => store.get(id)?.removing !== false,

    /** The volume's folder, for backups and restores. Rejects with EngineError. */
    async rootsOf(id: string): Promise<DataRoot[]> {
      const hostPath = (await present()).get(id)?.hostPath;
      return hostPath === undefined ? [] : [{ mountPath: VOLUME_MOUNT_PATH, hostPath }];
    },

    /** Mount for a pod. Rejects with VolumeMissing and EngineError. */
    async mountOf(id: string, podId: string): Promise<VolumeMount> {
      const isPresent = (await present()).has(id);
      if (!isPresent || store.get(id)?.removing !== false) {
        throw new VolumeMissing('The volume of the pod is not on this host');
      }
      if (deps.podsWith(id)[0] !== podId) {
        throw new VolumeMissing('Another pod has the volume');
      }
      if (deps.operations.activeKind(id) === 'restore') {
        throw new VolumeMissing('The volume of the pod is being restored');
      }
      // Mounted without labels: if the volume has vanished, the engine creates another in its place, which must not
      // be mistaken for this one.
      return { name: volumeCopyName(id), target: VOLUME_MOUNT_PATH, labels: {}, noCopy: true };
    },

    /** Volumes with their limit and folder. Rejects with EngineError. */
    async measurable(): Promise<{ id: string; sizeBytes: number; hostPath: string }[]> {
      // Saves a call of the engine: most hosts have no volumes.
      if (store.list().length === 0) return [];
      const states = await present();
      return store.list().flatMap(({ id, size_bytes: sizeBytes, removing }) => {
        const hostPath = states.get(id)?.hostPath;
        return hostPath === undefined || removing ? [] : [{ id, sizeBytes, hostPath }];
      });
    },
    measured: (id: string, measure: Measure): void => void measures.set(id, measure),
    /** Size at the last measurement or restore; null before the first. */
    lastKnownBytes(id: string): number | null {
      const measure = measures.get(id);
      return measure === undefined
        ? null
        : Math.max(measure.bytes, deps.operations.restoredBytes(id));
    },
  };
}

function idOf({ name }: VolumeState): string | null {
  if (!name.startsWith(NAME_PREFIX)) return null;
  return VolumeCopyId.safeParse(name.slice(NAME_PREFIX.length)).data ?? null;
}
