/**
 * Enforces disk limits that the kernel does not enforce: measures one pod after the other, warns, then stops the pod.
 */
import type { PodCondition } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type ContainerEngine, EngineError } from '../containers/engine/engine.ts';
import type { PodVolumes } from '../containers/volumes/pod-volumes.ts';
import type { DiskQuotaProbe, DiskStop } from './disk-limit.ts';
import type { FolderBytes } from './folder-size.ts';
import type { PodRow } from './pod.store.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';

/**
 * Interval of the measurements, ms. Long, because the engine walks all files of a container to measure it.
 */
export const DISK_INTERVAL_MS = 60_000;
const WARN_SHARE = 0.85;
/** Grace period in which a pod above its limit may delete files. A pod above NO_GRACE_SHARE has no grace period. */
const GRACE_MS = 55_000;
const NO_GRACE_SHARE = 1.25;
/**
 * Pause between two walks of a pod's volumes as a multiple of a walk's duration, so that walks take at most a tenth of
 * the time.
 */
const WALK_PAUSES = 9;

/** Bytes written by a pod. `volumes` is false if the volumes could not be measured. */
type Written = { bytes: number; volumes: boolean };
type Usage = { bytes: number; limit: number; overSinceMs: number | null; condition: PodCondition };
/** Last walk of a pod's volumes. `bytes` is null before the first measurement. `nextMs` is monotonic. */
type Walk = { bytes: number | null; nextMs: number };

export function createDiskWatch(deps: {
  engine: ContainerEngine;
  records: PodRecords;
  quota: DiskQuotaProbe;
  volumes: Pick<PodVolumes, 'list'>;
  folderBytes: FolderBytes;
  diskStop: DiskStop;
  clock: Clock;
  log: Log;
}) {
  const { engine, records, quota, diskStop, clock, log } = deps;
  /** Last measurement by pod id. */
  const usages = new Map<string, Usage>();
  const walks = new Map<string, Walk>();

  function note(row: PodRow, written: Written, limit: number): Usage {
    const { bytes } = written;
    const before = usages.get(row.id);
    const over = bytes >= limit;
    const usage = {
      bytes,
      limit,
      overSinceMs: over ? (before?.overSinceMs ?? clock.monotonicMs()) : null,
      condition: conditionOf(written, limit, before?.condition, clock.now()),
    };
    usages.set(row.id, usage);
    return usage;
  }

  function mustStop({ bytes, limit, overSinceMs }: Usage): boolean {
    if (overSinceMs === null) return false;
    return bytes >= limit * NO_GRACE_SHARE || clock.monotonicMs() - overSinceMs >= GRACE_MS;
  }

  /**
   * Measures the pod's volumes if the next walk is due, otherwise returns the last result. Null if no walk has
   * completed yet.
   */
  async function volumeBytes(podId: string): Promise<number | null> {
    const last = walks.get(podId);
    const beganMs = clock.monotonicMs();
    if (last !== undefined && beganMs < last.nextMs) return last.bytes;
    const folders = (await deps.volumes.list(podId)).map(({ hostPath }) => hostPath);
    const counted = folders.length === 0 ? 0 : await deps.folderBytes(folders);
    const bytes = counted ?? last?.bytes ?? null;
    const endedMs = clock.monotonicMs();
    walks.set(podId, { bytes, nextMs: endedMs + WALK_PAUSES * (endedMs - beganMs) });
    if (counted === null) log.debug({ pod_id: podId }, 'volumes of a pod could not be measured');
    return bytes;
  }

  async function measure(row: PodRow, containerId: string, limit: number): Promise<void> {
    const inContainer = await engine.containerDiskBytes(containerId);
    if (inContainer === null) return;
    const inVolumes = await volumeBytes(row.id);
    const written = { bytes: inContainer + (inVolumes ?? 0), volumes: inVolumes !== null };
    const usage = note(row, written, limit);
    const { bytes } = usage;
    if (!mustStop(usage)) return;
    log.warn({ pod_id: row.id, bytes, limit }, 'pod exceeds its disk limit and is stopped');
    await diskStop.begin(row, usage.condition.message);
  }

  async function check(row: PodRow): Promise<void> {
    const limit = specOf(row).limits.disk_bytes;
    const { container_id: containerId } = row;
    if (limit === undefined || containerId === null) return;
    if (row.phase === 'running') await measure(row, containerId, limit);
    else await diskStop.again(row);
  }

  return {
    async runOnce(): Promise<void> {
      const byPoll = (await quota.find()) === 'poll';
      // The kernel's limit covers the container's own files, so pods with volumes are always measured.
      const isWatched = (row: PodRow) => byPoll || specOf(row).volumes.length > 0;
      const rows = records.list().filter((row) => row.phase !== 'removed' && isWatched(row));
      const known = new Set(rows.map((row) => row.id));
      for (const figures of [usages, walks]) {
        for (const id of figures.keys()) if (!known.has(id)) figures.delete(id);
      }
      for (const row of rows) {
        await check(row).catch((error: unknown) => {
          if (!(error instanceof EngineError)) throw error;
          log.debug(
            { pod_id: row.id, detail: error.message },
            'disk use of a pod could not be measured',
          );
        });
      }
    },
    /** Bytes that the pod has written; null before the first measurement. */
    bytesOf: (podId: string): number | null => usages.get(podId)?.bytes ?? null,
    /** Bytes that the pod may still write; null if that is unknown or unlimited. */
    freeBytesOf(podId: string): number | null {
      const usage = usages.get(podId);
      return usage === undefined ? null : usage.limit - usage.bytes;
    },
    /** Null before the first measurement. */
    conditionOf: (podId: string): PodCondition | null => usages.get(podId)?.condition ?? null,
  };
}

function conditionOf(
  { bytes, volumes }: Written,
  limit: number,
  before: PodCondition | undefined,
  nowMs: number,
): PodCondition {
  const status = bytes < limit * WARN_SHARE;
  const full = bytes >= limit ? 'DiskQuotaExceeded' : 'DiskNearlyFull';
  const percent = Math.floor((bytes / limit) * 100);
  const uncounted = volumes ? '' : ', not counting its volumes, which cannot be measured';
  return {
    type: 'DiskWithinQuota',
    status,
    reason: status ? 'Ok' : full,
    message: `The pod has written ${bytes} of ${limit} bytes (${percent} %)${uncounted}`,
    last_transition_ms: before?.status === status ? before.last_transition_ms : nowMs,
  };
}
