/** Queries on the tables images and image_scopes: images that this agent has pulled or built. */
import { z } from 'zod';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

/** One row of `images`. */
export const ImageRow = z.object({
  reference: z.string(),
  image_id: z.string().nullable(),
  size_bytes: z.int(),
  last_used_ms: z.int(),
});
export type ImageRow = z.output<typeof ImageRow>;

export type FoundImage = { reference: string; imageId: string; sizeBytes: number; nowMs: number };

export type ImageStore = ReturnType<typeof createImageStore>;

/** Prepares the queries. The agent never removes images without a row. */
export function createImageStore(database: DatabaseSync) {
  const select = database.prepare('SELECT * FROM images WHERE reference = :reference');
  const selectAll = database.prepare('SELECT * FROM images ORDER BY last_used_ms, reference');
  const begin = database.prepare(
    `INSERT INTO images (reference, image_id, size_bytes, last_used_ms)
     VALUES (:reference, NULL, 0, :now_ms)
     ON CONFLICT (reference) DO UPDATE SET last_used_ms = :now_ms`,
  );
  const finish = database.prepare(
    `UPDATE images SET image_id = :image_id, size_bytes = :size_bytes, last_used_ms = :now_ms
     WHERE reference = :reference`,
  );
  const addScope = database.prepare(
    `INSERT INTO image_scopes (reference, scope)
     SELECT reference, :scope FROM images WHERE reference = :reference
     ON CONFLICT (reference, scope) DO NOTHING`,
  );
  const hasScope = database.prepare(
    `SELECT 1 AS found FROM image_scopes WHERE reference = :reference AND scope IN ('', :scope)`,
  );
  const touch = database.prepare(
    'UPDATE images SET last_used_ms = :now_ms WHERE reference = :reference',
  );
  const remove = database.prepare(
    'DELETE FROM images WHERE reference = :reference AND last_used_ms = :last_used_ms',
  );

  return {
    get(reference: string): ImageRow | null {
      const row = select.get({ reference });
      return row === undefined ? null : ImageRow.parse(row);
    },
    /** All rows, least recently used first. */
    list: (): ImageRow[] => selectAll.all().map((row) => ImageRow.parse(row)),
    /** Call before a pull or build, and only if the engine has no image with the name. */
    begin(reference: string, nowMs: number): void {
      begin.run({ reference, now_ms: nowMs });
    },
    /** Does nothing for an image without a row. */
    finish({ reference, imageId, sizeBytes, nowMs }: FoundImage): void {
      finish.run({ reference, image_id: imageId, size_bytes: sizeBytes, now_ms: nowMs });
    },
    addScope(reference: string, scope: string): void {
      addScope.run({ reference, scope });
    },
    /** True if the image was pulled without a login or with this one. */
    mayUse: (reference: string, scope: string): boolean =>
      hasScope.get({ reference, scope }) !== undefined,
    touch(reference: string, nowMs: number): void {
      touch.run({ reference, now_ms: nowMs });
    },
    /** Does nothing if the image was used since the row was read. */
    remove({ reference, last_used_ms }: ImageRow): void {
      remove.run({ reference, last_used_ms });
    },
  };
}
