/** What finished pulls tell of nodes and images: speeds as moving averages, sizes as they were seen. */
import type { FinishedPull } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import {
  dropOldImageSizes,
  findImageSize,
  findPullSpeed,
  noteImageSize,
  putPullSpeed,
} from './pull-speed.store.ts';

/** What the latest pull counts in the average. */
const WEIGHT = 0.3;
/** Smaller and shorter ones measure round trips, not the line. */
const MIN_BYTES = 16 * 1024 * 1024;
const MIN_MS = 500;
const MS_PER_SECOND = 1_000;
/** Bytes a second that no node has, however fast its agent says that it is. */
const FASTEST = 1e12;
/** Pulls that are remembered to be counted; forgetting them costs a look into the database. */
const MAX_REMEMBERED = 10_000;
const SIZE_KEPT_MS = 180 * 24 * 3_600_000;

/**
 * The average with one more pull in it, 1 to `FASTEST`: download and unpacking together, by compressed bytes,
 * per second. Pure.
 */
export function averagedSpeed(before: number | null, { bytes, took_ms }: FinishedPull): number {
  const speed = bounded((bytes * MS_PER_SECOND) / Math.max(1, took_ms));
  return before === null ? speed : bounded(before + (speed - before) * WEIGHT);
}

function bounded(bytesPerSecond: number): number {
  return Math.min(FASTEST, Math.max(1, Math.round(bytesPerSecond)));
}

/** What was measured so far of a node and of an image by its key; null for what was not. */
export async function pullFigures(
  db: Db,
  executorId: string,
  image: string,
): Promise<{ bytesPerSecond: number | null; imageBytes: number | null }> {
  const speed = await findPullSpeed(db, executorId);
  const imageBytes = await findImageSize(db, image);
  return { bytesPerSecond: speed?.bytes_per_second ?? null, imageBytes };
}

export type PullMeasures = ReturnType<typeof createPullMeasures>;

/** The figures are what agents say; nothing but estimates rests on them. */
export function createPullMeasures({ db, clock }: { db: Database; clock: Clock }) {
  const counted = new Map<string, number>();

  /** Does `count` unless that was done for a pull that ended as late; of a node, or of an image on it. */
  async function once(what: string, pull: FinishedPull, count: () => Promise<void>): Promise<void> {
    if ((counted.get(what) ?? -1) >= pull.finished_ms) return;
    await count();
    if (counted.size >= MAX_REMEMBERED) counted.clear();
    counted.set(what, pull.finished_ms);
  }

  async function noteSpeed(executorId: string, pull: FinishedPull): Promise<void> {
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
    /** Counts a pull once, however often it is told of; `image` is null where the pull is not that of one image. */
    async note(executorId: string, image: string | null, pull: FinishedPull): Promise<void> {
      const { image_bytes: bytes, is_whole: isWhole } = pull;
      // Another pod's pull on the node may have ended later: each tells of its own image.
      if (image !== null && bytes > 0) {
        await once(`${executorId} ${image}`, pull, () =>
          noteImageSize(db, { image, bytes, isWhole, nowMs: clock.now() }),
        );
      }
      await once(executorId, pull, () => noteSpeed(executorId, pull));
    },
  };
}

/** Forgets images that nobody has pulled for half a year. */
export async function forgetOldImages(db: Db, nowMs: number): Promise<void> {
  await dropOldImageSizes(db, nowMs - SIZE_KEPT_MS);
}
