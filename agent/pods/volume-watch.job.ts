/**
 * Measures persistent volumes, one after the other, and stops pods that exceed their volume's limit. The kernel enforces
 * no such limit, so a pod may exceed it between two measurements.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { EngineError } from '../containers/engine/engine.ts';
import type { VolumeService } from '../containers/volumes/volume.service.ts';
import type { DiskStop } from './disk-limit.ts';
import type { FolderBytes, FolderEntries } from './folder-size.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';

export const VOLUME_WATCH_INTERVAL_MS = 60_000;
/**
 * Grace period for a pod above its limit to delete files. Long, because a restored volume may start above the limit.
 */
const GRACE_MS = 600_000;
/** A pod has no grace period if the volume reaches this multiple of its limit and of its size when the pod got it. */
const NO_GRACE_SHARE = 1.25;
/** Pause between two walks as a multiple of a walk's duration, so that walks take at most a tenth of the time. */
const WALK_PAUSES = 9;

/** Times are monotonic. `firstBytes` is the volume's size when the present pod got it. */
type Measurement = {
  nextMs: number;
  podId: string | null;
  firstBytes: number;
  overSinceMs: number | null;
};

export function createVolumeWatch(deps: {
  volumes: Pick<VolumeService, 'measurable' | 'measured' | 'lastKnownBytes'>;
  records: PodRecords;
  folderBytes: FolderBytes;
  folderEntries: FolderEntries;
  diskStop: DiskStop;
  clock: Clock;
  log: Log;
}) {
  const { volumes, clock, log } = deps;
  const measurements = new Map<string, Measurement>();

  function holderOf(id: string) {
    const rows = deps.records.list().filter(({ phase }) => phase !== 'removed');
    return rows.find((row) => specOf(row).volume?.id === id);
  }

  async function measure(volume: { id: string; sizeBytes: number; hostPath: string }) {
    const { id, sizeBytes: limit, hostPath } = volume;
    const pod = holderOf(id);
    // Repeats a stop that a kill of the agent interrupted.
    if (pod !== undefined) await deps.diskStop.again(pod);
    const last = measurements.get(id);
    const beganMs = clock.monotonicMs();
    if (last !== undefined && last.podId === (pod?.id ?? null) && beganMs < last.nextMs) return;
    const bytes = await deps.folderBytes([hostPath]);
    const entries = await deps.folderEntries([hostPath]);
    const endedMs = clock.monotonicMs();
    const isSamePod = last !== undefined && last.podId === (pod?.id ?? null);
    const isOver = bytes !== null && bytes >= limit;
    const next: Measurement = {
      nextMs: endedMs + WALK_PAUSES * (endedMs - beganMs),
      podId: pod?.id ?? null,
      firstBytes: isSamePod ? last.firstBytes : (volumes.lastKnownBytes(id) ?? bytes ?? 0),
      overSinceMs: isOver ? ((isSamePod ? last.overSinceMs : null) ?? endedMs) : null,
    };
    measurements.set(id, next);
    if (bytes === null || entries === null) {
      log.debug({ copy_id: id }, 'a volume could not be measured');
      return;
    }
    // The measured entries include the folder itself.
    volumes.measured(id, { bytes, files: Math.max(0, entries - 1), atMs: clock.now() });
    if (pod === undefined || next.overSinceMs === null) return;
    const isFar = bytes >= NO_GRACE_SHARE * Math.max(limit, next.firstBytes);
    if (!isFar && endedMs - next.overSinceMs < GRACE_MS) return;
    const message = `The volume at /mnt has ${bytes} bytes, its limit is ${limit}`;
    log.warn(
      { pod_id: pod.id, copy_id: id, bytes, limit },
      'volume exceeds its limit; stopping its pod',
    );
    await deps.diskStop.begin(pod, message);
  }

  return {
    async runOnce(): Promise<void> {
      const present = await volumes.measurable();
      const known = new Set(present.map(({ id }) => id));
      for (const id of measurements.keys()) if (!known.has(id)) measurements.delete(id);
      for (const volume of present) {
        await measure(volume).catch((error: unknown) => {
          if (!(error instanceof EngineError)) throw error;
          log.debug({ copy_id: volume.id, detail: error.message }, 'measuring a volume failed');
        });
      }
    },
  };
}
