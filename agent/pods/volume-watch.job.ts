/**
 * Measures what lies in volumes, one after the other, and holds pods to their volumes' limits: no kernel does, so that
 * a pod may pass its limit between two looks.
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
/** Who is above the limit has so long to tidy up: what it holds may have been saved above it. */
const GRACE_MS = 600_000;
/** Above this share of the limit, or of what the pod found in it, there is no grace. */
const NO_GRACE_SHARE = 1.25;
/** Pauses between two walks, in walks: they take at most a tenth of the time. */
const WALK_PAUSES = 9;

/** Times are monotonic. `firstBytes`: what the present pod found in it, not what it has written before the first look. */
type Look = {
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
  const looks = new Map<string, Look>();

  function holderOf(id: string) {
    const rows = deps.records.list().filter(({ phase }) => phase !== 'removed');
    return rows.find((row) => specOf(row).volume?.id === id);
  }

  async function measure(volume: { id: string; sizeBytes: number; hostPath: string }) {
    const { id, sizeBytes: limit, hostPath } = volume;
    const pod = holderOf(id);
    // The agent may have been killed between the decision and the stop.
    if (pod !== undefined) await deps.diskStop.again(pod);
    const last = looks.get(id);
    const beganMs = clock.monotonicMs();
    if (last !== undefined && last.podId === (pod?.id ?? null) && beganMs < last.nextMs) return;
    const bytes = await deps.folderBytes([hostPath]);
    const entries = await deps.folderEntries([hostPath]);
    const endedMs = clock.monotonicMs();
    const isSamePod = last !== undefined && last.podId === (pod?.id ?? null);
    const isOver = bytes !== null && bytes >= limit;
    const look: Look = {
      nextMs: endedMs + WALK_PAUSES * (endedMs - beganMs),
      podId: pod?.id ?? null,
      firstBytes: isSamePod ? last.firstBytes : (volumes.lastKnownBytes(id) ?? bytes ?? 0),
      overSinceMs: isOver ? ((isSamePod ? last.overSinceMs : null) ?? endedMs) : null,
    };
    looks.set(id, look);
    if (bytes === null || entries === null) {
      log.debug({ copy_id: id }, 'a volume could not be measured');
      return;
    }
    // The folder itself is none of what lies in it.
    volumes.measured(id, { bytes, files: Math.max(0, entries - 1), atMs: clock.now() });
    if (pod === undefined || look.overSinceMs === null) return;
    const isFar = bytes >= NO_GRACE_SHARE * Math.max(limit, look.firstBytes);
    if (!isFar && endedMs - look.overSinceMs < GRACE_MS) return;
    const message = `The volume at /mnt holds ${bytes} bytes, of ${limit} that it may`;
    log.warn({ pod_id: pod.id, copy_id: id, bytes, limit }, 'a volume is above its limit');
    await deps.diskStop.begin(pod, message);
  }

  return {
    async runOnce(): Promise<void> {
      const present = await volumes.measurable();
      const known = new Set(present.map(({ id }) => id));
      for (const id of looks.keys()) if (!known.has(id)) looks.delete(id);
      for (const volume of present) {
        await measure(volume).catch((error: unknown) => {
          if (!(error instanceof EngineError)) throw error;
          log.debug({ copy_id: volume.id, detail: error.message }, 'a volume was not measured');
        });
      }
    },
  };
}
