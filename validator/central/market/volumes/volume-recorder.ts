/** Writes a node's reports about a copy into its row: conditional moves, each with its event. */

import type { OperationView } from '#shared/api/agent/operations.ts';
import type { VolumeView } from '#shared/api/agent/volumes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, VolumeCopy } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { pauseAfter } from './volume.plan.ts';
import { SAVE_INTERVAL_MS } from './volume.state.ts';
import { changeCopy, detachFrom, findVolume, moveCopy, updateVolume } from './volume.store.ts';
import { abandonCopy, recordVolumeEvent } from './volume-attachment.ts';

/** Maximum length of a node's message in a row. */
const MAX_MESSAGE_CHARS = 500;
/** Shortest time between two writes of `seen_at` and figures. */
const SEEN_RESOLUTION_MS = 30_000;

/** Error code for a busy node or an unreachable engine. `failed` records no event for this code. */
export const DELAYED = 'Delayed';

const SETTLED = {
  operation_id: null,
  stage: null,
  percent: 0,
  attempts: 0,
  retry_at: null,
  error_code: null,
  error_message: null,
} as const;

/** Creates the recorder. Its functions have no effect if the row has changed since it was read. */
export function createVolumeRecorder(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock } = deps;
  const actor = SYSTEM_ACTOR;

  return {
    /**
     * Updates `seen_at`, and the sizes of an attached copy, at most every 30 s. Does nothing if the node should list
     * the copy but does not list it.
     */
    async seen(copy: VolumeCopy, view: VolumeView | undefined): Promise<void> {
      const isExpected = copy.state === 'attached' || copy.state === 'saving';
      if (isExpected && view === undefined) return;
      const nowMs = clock.now();
      if (nowMs - copy.seen_at < SEEN_RESOLUTION_MS) return;
      await changeCopy(db, copy, { seen_at: nowMs });
      if (copy.state !== 'attached' || view?.bytes == null || view.files === null) return;
      const { bytes, files, measured_age_ms: ageMs } = view;
      await updateVolume(db, copy.volume_id, { bytes, files, measured_at: nowMs - (ageMs ?? 0) });
    },

    /**
     * Stores the id of an operation before the node receives the operation. Returns null while the repository is
     * cleaned, or if the row has changed.
     */
    begun(copy: VolumeCopy, operationId: string): Promise<VolumeCopy | null> {
      return db.transaction().execute(async (tx) => {
        const volume = await findVolume(tx, copy.volume_id);
        if (volume === undefined || volume.cleaning_boot_id !== null) return null;
        const change = { operation_id: operationId, stage: null, percent: 0, retry_at: null };
        return (await changeCopy(tx, copy, change)) ? { ...copy, ...change } : null;
      });
    },

    async progress(copy: VolumeCopy, { stage, percent, obstacle }: OperationView): Promise<void> {
      const waits = stage === 'queued' && obstacle !== copy.error_message;
      if (copy.stage === stage && copy.percent === percent && !waits) return;
      const hasMoved = copy.stage === 'queued' && stage !== 'queued';
      await changeCopy(db, copy, {
        stage,
        percent: Math.min(100, Math.max(0, percent)),
        ...(waits || hasMoved ? { error_message: obstacle } : {}),
      });
    },

    /** Marks the copy as attached, so that its pod may start. Records an event if data was restored. */
    attached(copy: VolumeCopy): Promise<void> {
      return db.transaction().execute(async (tx) => {
        const nowMs = clock.now();
        const change = { ...SETTLED, retry_at: nowMs + SAVE_INTERVAL_MS, updated_at: nowMs };
        if (!(await moveCopy(tx, copy.id, 'attached', change))) return;
        if (copy.source_snapshot_id === null) return;
        await recordVolumeEvent(tx, deps, copy, { actor, detail: 'volume_restored' });
      });
    },

    /** Makes the snapshot the volume's saved state, unless the copy was abandoned. An attached copy stays attached. */
    saved(copy: VolumeCopy, snapshotId: string, view: OperationView): Promise<void> {
      return db.transaction().execute(async (tx) => {
        const nowMs = clock.now();
        const volume = await findVolume(tx, copy.volume_id);
        const { operation_id: operationId } = copy;
        if (volume === undefined || operationId === null) return;
        const change = { ...SETTLED, updated_at: nowMs };
        const next = { ...change, retry_at: nowMs + SAVE_INTERVAL_MS };
        const isSaved =
          copy.state === 'attached'
            ? await changeCopy(tx, copy, next, operationId)
            : await moveCopy(tx, copy.id, 'dropping', change, operationId);
        if (!isSaved) return;
        await updateVolume(tx, volume.id, {
          snapshot_id: snapshotId,
          saved_at: nowMs,
          made_at: volume.made_at ?? nowMs,
          has_waste: volume.snapshot_id === null ? volume.has_waste : 1,
          bytes: view.total_bytes ?? volume.bytes,
          files: view.total_files ?? volume.files,
          measured_at: nowMs,
        });
        await recordVolumeEvent(tx, deps, copy, { actor, detail: 'volume_saved' });
        if (view.damage === null) return;
        const error = `The volume was saved, but its saved data may be incomplete. ${view.damage}`;
        await recordVolumeEvent(tx, deps, copy, { actor, detail: 'volume_saved', error });
      });
    },

    /** Schedules another attempt. Records one event for each new cause. */
    failed(copy: VolumeCopy, { code, message }: { code: string; message: string }): Promise<void> {
      return db.transaction().execute(async (tx) => {
        const attempts = copy.attempts + 1;
        const error = message.slice(0, MAX_MESSAGE_CHARS);
        const change = {
          operation_id: null,
          stage: null,
          percent: 0,
          attempts,
          retry_at: clock.now() + pauseAfter(attempts),
          error_code: code,
          error_message: error,
        };
        if (!(await changeCopy(tx, copy, change))) return;
        if (copy.error_code === code || code === DELAYED) return;
        const detail = copy.state === 'restoring' ? 'volume_restored' : 'volume_saved';
        await recordVolumeEvent(tx, deps, copy, { actor, detail, error });
      });
    },

    /**
     * Returns the volume to its last saved state. `detaches`: also detaches the volume from its pod, which is ending.
     */
    abandoned(copy: VolumeCopy, error: string, { detaches }: { detaches: boolean }): Promise<void> {
      return db.transaction().execute(async (tx) => {
        await findVolume(tx, copy.volume_id);
        if (!(await abandonCopy(tx, deps, copy, { error }))) return;
        if (detaches) await detachFrom(tx, copy.pod_id);
      });
    },
  };
}
