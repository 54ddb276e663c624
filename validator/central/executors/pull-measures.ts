/** What finished pulls tell of nodes and images: speeds as moving averages, sizes as they were seen. */
import type { FinishedPull } from '#shared/agent-api/pull-progress.ts';
import type { Clock } from '#shared/clock.ts';
import type { Database, Db } from '../db/tables.ts';
import {
  dropOldImageSizes,
  findImageSize,
  findPullSpeed,
  noteImageSize,
  type PullSpeed,
  putPullSpeed,
} from './pull-speed.store.ts';

/** What the latest pull counts in the average. */
const WEIGHT = 0.3;
/** Smaller and shorter ones measure round trips, not the line. */
const MIN_BYTES = 16 * 1024 * 1024;
const MIN_MS = 500;
const MS_PER_SECOND = 1_000;
/** Nodes whose last pull is remembered to be counted; forgetting one costs a look into the database. */
const MAX_REMEMBERED = 10_000;
const SIZE_KEPT_MS = 180 * 24 * 3_600_000;

/** The average with one more pull in it: download and unpacking together, by compressed bytes. Pure. */
export function averagedSpeed(before: number | null, { bytes, took_ms }: FinishedPull): number {
  const speed = Math.max(1, Math.round((bytes * MS_PER_SECOND) / took_ms));
  return before === null ? speed : Math.round(before + (speed - before) * WEIGHT);
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

  async function noteSpeed(
    executorId: string,
    before: PullSpeed | undefined,
    pull: FinishedPull,
  ): Promise<void> {
    if (pull.bytes < MIN_BYTES || pull.took_ms < MIN_MS) return;
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
      if ((counted.get(executorId) ?? 0) >= pull.finished_ms) return;
      if (counted.size >= MAX_REMEMBERED) counted.clear();
      counted.set(executorId, pull.finished_ms);
      const before = await findPullSpeed(db, executorId);
      if (before !== undefined && before.last_finished_ms >= pull.finished_ms) return;
      await noteSpeed(executorId, before, pull);
      if (image === null || pull.image_bytes === 0) return;
      const { image_bytes: bytes, is_whole: isWhole } = pull;
      await noteImageSize(db, { image, bytes, isWhole, nowMs: clock.now() });
    },
    /** Forgets images that nobody has pulled for half a year. */
    sweep: () => dropOldImageSizes(db, clock.now() - SIZE_KEPT_MS),
  };
}
