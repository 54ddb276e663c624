/**
 * Selects the form of the error body by path. Routes of volumes, bookmarks and machine requests use the older flat
 * body. Pure.
 */
import type { ErrorProfile } from '#shared/http/error-body.ts';

const FLAT = /^\/api\/(?:volumes(?:\/[^/]+)?|bookmarks?(?:\/.*)?|machine-requests(?:\/.*)?)\/?$/;
/** Paths on which only internal errors have the flat body. Client errors have the envelope. */
const FLAT_WHEN_BROKEN = /^\/api\/backup-(?:configs|logs)(?:\/.*)?$/;
const INTERNAL_ERROR = 500;

/** Returns the form of the error body. `path` must not include the query. */
export function errorProfileOf(path: string, status: number): ErrorProfile {
  if (FLAT.test(path)) return 'flat';
  return status === INTERNAL_ERROR && FLAT_WHEN_BROKEN.test(path) ? 'flat' : 'envelope';
}
