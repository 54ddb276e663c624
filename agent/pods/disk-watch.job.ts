/**
 * Enforces disk limits that the kernel does not enforce: measures one pod after the other, warns, then stops the pod.
 * Measures early while the disk fills, and limits files while the disk has few left.
 */
import type { PodCondition } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type ContainerEngine, EngineError } from '../containers/engine/engine.ts';
import type { PodVolumes } from '../containers/volumes/pod-volumes.ts';
import type { DiskQuotaProbe, DiskSpace, DiskStop } from './disk-limit.ts';
import type { FolderBytes, FolderEntries } from './folder-size.ts';
import type { PodRow } from './pod.store.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';

/**
 * Interval of the measurements while the disk does not fill, ms. Long, because the engine walks all files of a container to measure it.
 */
const MEASURE_INTERVAL_MS = 60_000;
/** Interval at which the free space of the disk is read. */
export const DISK_INTERVAL_MS = 5_000;
/**
 * Shares of the disk: below the first, the pods are measured again whenever DRAINED of the free space is left; below the
 * second, no pod has a grace period, and files are limited.
 */
const LOW_SHARE = 0.25;
const TIGHT_SHARE = 0.05;
const DRAINED = 0.75;
/** Files that each pod may have. Beyond, it may have as large a share of the disk's files as of its bytes. */
const MIN_FILES = 10_000;
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
  folderEntries: FolderEntries;
  /** Reads the space of the disk that pods fill. */
  diskSpace(): Promise<DiskSpace>;
  diskStop: DiskStop;
  clock: Clock;
  log: Log;
}) {
  const { engine, records, quota, diskStop, clock, log } = deps;
  /** Last measurement by pod id. */
  const usages = new Map<string, Usage>();
  const walks = new Map<string, Walk>();
  let space: DiskSpace | null = null;
  /** Space at the last measurement of the pods. */
  let before: DiskSpace | null = null;
  let measuredMs = Number.NEGATIVE_INFINITY;

  async function readSpace(): Promise<void> {
    space = await deps.diskSpace().catch((error: unknown) => {
      log.debug({ detail: messageOf(error) }, 'the space of the disk could not be read');
      return null;
    });
  }

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
    if (space !== null && space.freeBytes < space.totalBytes * TIGHT_SHARE) return true;
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
    if (!mustStop(usage)) return limitFiles(row, containerId, limit);
    log.warn({ pod_id: row.id, bytes, limit }, 'pod exceeds its disk limit and is stopped');
    await diskStop.begin(row, usage.condition.message);
  }

  /** Stops a pod with more files than its share of the disk while the disk has few files left. */
  async function limitFiles(row: PodRow, containerId: string, limit: number): Promise<void> {
    if (space === null || space.freeFiles >= space.totalFiles * TIGHT_SHARE) return;
    const share = Math.min(1, limit / space.totalBytes);
    const most = Math.max(MIN_FILES, Math.floor(space.totalFiles * share));
    const written = (await engine.containerFiles(containerId))?.layers?.upper;
    const volumes = (await deps.volumes.list(row.id)).map(({ hostPath }) => hostPath);
    const files = await deps.folderEntries([
      ...(written === undefined ? [] : [written]),
      ...volumes,
    ]);
    if (files === null || files <= most) return;
    const message = `The disk of the node has almost no room for further files. The pod has ${files} files, and its share is ${most}`;
    log.warn({ pod_id: row.id, files, limit: most }, 'pod has too many files and is stopped');
    await diskStop.begin(row, message);
  }

  async function check(row: PodRow): Promise<void> {
    const limit = specOf(row).limits.disk_bytes;
    const { container_id: containerId } = row;
    if (limit === undefined || containerId === null) return;
    if (row.phase === 'running') await measure(row, containerId, limit);
    else await diskStop.again(row);
  }

  async function measureAll(): Promise<void> {
    measuredMs = clock.monotonicMs();
    before = space;
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
  }

  /** Returns true if the disk is nearly full and has lost much of its free space since the last measurement. */
  function isFilling(): boolean {
    if (space === null || before === null) return false;
    const falls = (free: number, earlier: number, total: number) =>
      free < total * LOW_SHARE && free < earlier * DRAINED;
    return (
      falls(space.freeBytes, before.freeBytes, space.totalBytes) ||
      falls(space.freeFiles, before.freeFiles, space.totalFiles)
    );
  }

  return {
    /** Measures the pods. */
    async runOnce(): Promise<void> {
      await readSpace();
      await measureAll();
    },
    /** Measures the pods if the last measurement is a minute old, or the disk fills. */
    async poll(): Promise<void> {
      await readSpace();
      const isDue = clock.monotonicMs() - measuredMs >= MEASURE_INTERVAL_MS;
      if (isDue || isFilling()) await measureAll();
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
