/** Which images may go when the disk fills up (agent reference 6). Pure. */
import type { ImageRow } from './image.store.ts';

/** Percent of the disk in use at which removing begins, and at which it ends. */
export type DiskMarks = { start: number; stop: number };

/** What must stay, by the engine's id or by name. */
export type InUse = ReadonlySet<string>;

/** An image just fetched has its pod before long. */
export const MIN_UNUSED_MS = 600_000;
/** A row of an image that was on its way; far beyond any pull. */
export const ABANDONED_MS = 24 * 3_600_000;

/** Longest unused first. */
export function removableImages(
  rows: readonly ImageRow[],
  inUse: InUse,
  nowMs: number,
): ImageRow[] {
  return rows
    .filter((row) => row.image_id !== null && !isUsed(row, inUse))
    .filter((row) => nowMs - row.last_used_ms >= MIN_UNUSED_MS)
    .toSorted((a, b) => a.last_used_ms - b.last_used_ms);
}

export function isUsed({ image_id, reference }: ImageRow, inUse: InUse): boolean {
  return inUse.has(reference) || (image_id !== null && inUse.has(image_id));
}

/** Begun and never finished: by an agent that was killed, or by a pull that failed long ago. */
export function isAbandoned(row: ImageRow, startedMs: number, nowMs: number): boolean {
  const isOfEarlierLife = row.last_used_ms < startedMs;
  return row.image_id === null && (isOfEarlierLife || nowMs - row.last_used_ms >= ABANDONED_MS);
}
