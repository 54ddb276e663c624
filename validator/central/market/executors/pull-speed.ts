/** Measures pulls: the speed of nodes as a moving average, and the size of images. */
import type { FinishedPull } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import {
  deleteImageSizesBefore,
  findImageSize,
  findPullSpeed,
  putPullSpeed,
  recordImageSize,
} from './pull-speed.store.ts';

/** Weight of the latest pull in the average. */
const WEIGHT = 0.3;
/** Pulls that are smaller or shorter measure latency instead of speed. */
const MIN_BYTES = 16 * 1024 * 1024;
const MIN_MS = 500;
const MS_PER_SECOND = 1_000;
/** Upper bound in bytes per second for speeds that agents report. */
const FASTEST = 1e12;
/**
 * Maximum number of cached keys of counted pulls. A full cache is cleared; a pull that is reported again then costs one
 * query.
 */
const MAX_COUNTED = 10_000;
const SIZE_KEPT_MS = 180 * 24 * 3_600_000;

/** Adds a pull to the average: compressed bytes per second, download and unpacking together, 1 to `FASTEST`. Pure. */
export function averagedSpeed(before: number | null, { bytes, took_ms }: FinishedPull): number {
  const speed = bounded((bytes * MS_PER_SECOND) / Math.max(1, took_ms));
  return before === null ? speed : bounded(before + (speed - before) * WEIGHT);
}

function bounded(bytesPerSecond: number): number {
  return Math.min(FASTEST, Math.max(1, Math.round(bytesPerSecond)));
}

/** Measurements of a node and of an image; null for missing measurements. */
export async function pullFigures(
  db: Db,
  executorId: string,
  image: string,
): Promise<{ bytesPerSecond: number | null; imageBytes: number | null }> {
  const speed = await findPullSpeed(db, executorId);
  const imageBytes = await findImageSize(db, image);
  return { bytesPerSecond: speed?.bytes_per_second ?? null, imageBytes };
}

export type PullMeasures = ReturnType<typeof createPullRecorder>;

/** Creates the recorder of finished pulls. Agents report the figures, so only estimates may depend on them. */
export function createPullRecorder({ db, clock }: { db: Database; clock: Clock }) {
  const counted = new Map<string, number>();

  /** Calls `count` unless a pull with the same or a later end was already counted under the same key. */
  async function once(what: string, pull: FinishedPull, count: () => Promise<void>): Promise<void> {
    if ((counted.get(what) ?? -1) >= pull.finished_ms) return;
    await count();
    if (counted.size >= MAX_COUNTED) counted.clear();
    counted.set(what, pull.finished_ms);
  }

  async function recordSpeed(executorId: string, pull: FinishedPull): Promise<void> {
    if (pull.bytes < MIN_BYTES || pull.took_ms < MIN_MS) return;
    const before = await findPullSpeed(db, executorId);
    if (before !== undefined && before.last_finished_ms >= pull.finished_ms) return;
    await putPullSpeed(db, before, {
      executor_id: executorId,
      bytes_per_second: averagedSpeed(before?.bytes_per_second ?? null, pull),
      pulls: (before?.pulls ?? 0) + 1,
      last_finished_ms: pull.finished_ms,
      updated_at: clock.now(),
    });
  }

  return {
    /** Counts a pull once, even if it is reported repeatedly. `image` is null if the pull was not of one image. */
    async record(executorId: string, image: string | null, pull: FinishedPull): Promise<void> {
      const { image_bytes: bytes, is_whole: isWhole } = pull;
      // Each pod reports its own image, so the key includes the image.
      if (image !== null && bytes > 0) {
        await once(`${executorId} ${image}`, pull, () =>
          recordImageSize(db, { image, bytes, isWhole, nowMs: clock.now() }),
        );
      }
      await once(executorId, pull, () => recordSpeed(executorId, pull));
    },
  };
}

/** Deletes sizes of images that were not pulled for half a year. */
export async function deleteOldImageSizes(db: Db, nowMs: number): Promise<void> {
  await deleteImageSizesBefore(db, nowMs - SIZE_KEPT_MS);
}
