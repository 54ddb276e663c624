/** Which error body a path gets (contract 2.3): the older route groups keep theirs. Pure. */
import type { ErrorProfile } from '#shared/http/error-body.ts';

const FLAT = /^\/api\/(?:volumes(?:\/[^/]+)?|bookmarks?(?:\/.*)?|machine-requests(?:\/.*)?)\/?$/;
/** Their refusals have the envelope, and only what went wrong here does not. */
const FLAT_WHEN_BROKEN = /^\/api\/backup-(?:configs|logs)(?:\/.*)?$/;
const INTERNAL_ERROR = 500;

/** `path` without its query. */
export function errorProfileOf(path: string, status: number): ErrorProfile {
  if (FLAT.test(path)) return 'flat';
  return status === INTERNAL_ERROR && FLAT_WHEN_BROKEN.test(path) ? 'flat' : 'envelope';
}
