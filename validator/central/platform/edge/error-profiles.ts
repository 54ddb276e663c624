/** Error body of each path: volumes, bookmarks and machine requests keep the older flat body. Pure. */
import type { ErrorProfile } from '#shared/http/error-body.ts';

const FLAT = /^\/api\/(?:volumes(?:\/[^/]+)?|bookmarks?(?:\/.*)?|machine-requests(?:\/.*)?)\/?$/;
/** Client errors have the envelope; only internal errors are flat. */
const FLAT_WHEN_BROKEN = /^\/api\/backup-(?:configs|logs)(?:\/.*)?$/;
const INTERNAL_ERROR = 500;

/** `path` without its query. */
export function errorProfileOf(path: string, status: number): ErrorProfile {
  if (FLAT.test(path)) return 'flat';
  return status === INTERNAL_ERROR && FLAT_WHEN_BROKEN.test(path) ? 'flat' : 'envelope';
}
