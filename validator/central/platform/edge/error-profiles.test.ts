import { expect, it } from 'vitest';
import { errorProfileOf } from './error-profiles.ts';

it.each([
  ['/api/volumes', 401, 'flat'],
  ['/api/volumes/', 500, 'flat'],
  ['/api/volumes/7', 404, 'flat'],
  ['/api/volumes/7/current-stats', 404, 'envelope'],
  ['/api/bookmark', 422, 'flat'],
  ['/api/bookmarks/7', 429, 'flat'],
  ['/api/machine-requests/7/cancel', 405, 'flat'],
  ['/portal/machine-requests', 403, 'envelope'],
  ['/api/backup-configs/7', 404, 'envelope'],
  ['/api/backup-configs/7', 500, 'flat'],
  ['/api/backup-logs/', 500, 'flat'],
  ['/api/backup-logs/', 502, 'envelope'],
  ['/api/volumesque', 404, 'envelope'],
  ['/api/pods', 500, 'envelope'],
] as const)('%s answers %i as %s', (path, status, profile) => {
  expect(errorProfileOf(path, status)).toBe(profile);
});
