import { expect, it } from 'vitest';
import { formatBytes } from '../parts/format.ts';
import { drillResult, isRunning, mayDelete, progressParts } from './backup-rules.ts';

it('a backup that runs can be cancelled, and one that has ended can be deleted once', () => {
  expect([isRunning('PENDING'), isRunning('IN_PROGRESS'), isRunning('COMPLETED')]).toEqual([
    true,
    true,
    false,
  ]);
  expect(mayDelete({ status: 'IN_PROGRESS', deletion_state: null })).toBe(false);
  expect(mayDelete({ status: 'COMPLETED', deletion_state: null })).toBe(true);
  expect(mayDelete({ status: 'COMPLETED', deletion_state: 'PENDING' })).toBe(false);
});

it.each([
  [{ verify_status: null, verify_error: null, verified_files: null }, undefined],
  [{ verify_status: 'PASSED', verify_error: null, verified_files: 3 }, 'good'],
  [{ verify_status: 'FAILED', verify_error: 'x', verified_files: null }, 'bad'],
  [{ verify_status: 'INCONCLUSIVE', verify_error: null, verified_files: null }, 'warn'],
] as const)('%j: %s', (backup, tone) => expect(drillResult(backup)?.tone).toBe(tone));

it('describes the progress by what was measured', () => {
  const nothing = {
    processed_files: null,
    total_files: null,
    processed_bytes: null,
    total_bytes: null,
    throughput_bytes_per_second: null,
    estimated_remaining_seconds: null,
  };
  expect(progressParts(nothing, formatBytes)).toEqual([]);
  const half = { ...nothing, processed_bytes: 1024, total_bytes: 2048, processed_files: 5 };
  expect(progressParts({ ...half, estimated_remaining_seconds: 61 }, formatBytes)).toEqual([
    '1.0 KiB of 2.0 KiB',
    '5 files',
    'about 2 min left',
  ]);
});
