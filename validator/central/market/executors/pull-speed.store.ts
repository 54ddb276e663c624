/** All queries on pull_speeds and image_sizes. */

import { sql } from 'kysely';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { PullSpeedsTable } from '../../platform/database/tables/executors.ts';
import type { Db } from '../../platform/database/tables.ts';

export type PullSpeed = PullSpeedsTable;

const speedOf = prepared((db, { executorId }: Slots<{ executorId: string }>) =>
  db.selectFrom('pull_speeds').selectAll().where('executor_id', '=', executorId),
);

/** Returns undefined for a node without a measured pull. */
export async function findPullSpeed(db: Db, executorId: string): Promise<PullSpeed | undefined> {
  return (await speedOf(db, { executorId })).rows[0];
}

/** Inserts the first measurement, or replaces `before`. Returns false if another transaction was faster. */
export async function putPullSpeed(
  db: Db,
  before: PullSpeed | undefined,
  next: PullSpeed,
): Promise<boolean> {
  if (before === undefined) {
    const added = await db
      .insertInto('pull_speeds')
      .values(next)
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return (added.numInsertedOrUpdatedRows ?? 0n) > 0n;
  }
  const changed = await db
    .updateTable('pull_speeds')
    .set(next)
    .where('executor_id', '=', next.executor_id)
    .where('last_finished_ms', '=', before.last_finished_ms)
    .executeTakeFirst();
  return changed.numUpdatedRows > 0n;
}

const sizeOf = prepared((db, { image }: Slots<{ image: string }>) =>
  db.selectFrom('image_sizes').select('compressed_bytes').where('image', '=', image),
);

/** Compressed size in bytes; null for an unknown image. */
export async function findImageSize(db: Db, image: string): Promise<number | null> {
  return (await sizeOf(db, { image })).rows[0]?.compressed_bytes ?? null;
}

/**
 * Stores an image's size. The size of a whole image replaces any other; the size of a part replaces only the size of a
 * smaller part.
 */
export async function recordImageSize(
  db: Db,
  size: { image: string; bytes: number; isWhole: boolean; nowMs: number },
): Promise<void> {
  const row = {
    compressed_bytes: size.bytes,
    is_whole: size.isWhole ? (1 as const) : (0 as const),
    updated_at: size.nowMs,
  };
  await db
    .insertInto('image_sizes')
    .values({ image: size.image, ...row })
    .onConflict((conflict) =>
      conflict
        .column('image')
        .doUpdateSet(row)
        .where(
          sql<boolean>`${row.is_whole} = 1 or (image_sizes.is_whole = 0
            and image_sizes.compressed_bytes < ${row.compressed_bytes})`,
        ),
    )
    .execute();
}

export async function deleteImageSizesBefore(db: Db, untilMs: number): Promise<void> {
  await db.deleteFrom('image_sizes').where('updated_at', '<', untilMs).execute();
}
