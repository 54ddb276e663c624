import { expect, it } from 'vitest';
import type { Volume } from '../api/api.gen.ts';
import { isMoving, mayRelease, whyNotDelete } from './volume.ts';

const volume = (change: Partial<Volume>): Volume => ({
  id: 'v',
  name: 'data',
  description: '',
  current_size_bytes: 0,
  current_size_mb: 0,
  current_size_gb: 0,
  current_file_count: 0,
  size_limit_bytes: 1,
  last_metrics_update: null,
  attached_pod_id: null,
  status: 'available',
  executor_id: null,
  last_saved_at: null,
  progress: null,
  message: null,
  created_at: '2026-01-01T00:00:00',
  updated_at: '2026-01-01T00:00:00',
  ...change,
});

it.each<[Partial<Volume>, boolean, boolean, RegExp | null]>([
  [{}, false, false, null],
  [{ status: 'attached', attached_pod_id: 'p', executor_id: 'n' }, false, false, /pod/],
  [{ status: 'restoring', attached_pod_id: 'p', executor_id: 'n' }, true, false, /pod/],
  [{ status: 'saving', executor_id: 'n' }, true, true, null],
])('a volume with %j: moving %s, release %s', (change, moving, release, why) => {
  const row = volume(change);
  expect([isMoving(row), mayRelease(row)]).toEqual([moving, release]);
  if (why === null) expect(whyNotDelete(row)).toBeNull();
  else expect(whyNotDelete(row)).toMatch(why);
});
