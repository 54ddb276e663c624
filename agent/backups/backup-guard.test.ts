import { expect, it } from 'vitest';
import { excessOf, needsMeasure } from './backup-guard.ts';

const GIB = 1024 ** 3;
const HOUR_MS = 3_600_000;

it('measures only backups of large files, and long ones', () => {
  expect(needsMeasure({ sizeBytes: 64 * GIB, elapsedMs: HOUR_MS })).toBe(false);
  expect(needsMeasure({ sizeBytes: 64 * GIB + 1, elapsedMs: 0 })).toBe(true);
  expect(needsMeasure({ sizeBytes: 0, elapsedMs: HOUR_MS + 1 })).toBe(true);
});

it.each([
  ['a sparse file of 4 TiB', 4096 * GIB, 0, 0, 'NoSpace'],
  ['a database with gaps', 400 * GIB, 0, 100 * GIB, null],
  ['an hour for nothing on disk', 0, HOUR_MS + 1, 0, 'DeadlineExceeded'],
  ['a day over a slow link', 80 * GIB, 23 * HOUR_MS, 80 * GIB, null],
  ['endless changes', GIB, 2 * HOUR_MS, GIB, 'DeadlineExceeded'],
])(
  'limits size and time by the bytes on disk: %s',
  (_name, sizeBytes, elapsedMs, allocated, code) => {
    expect(excessOf({ sizeBytes, elapsedMs }, allocated)?.code ?? null).toBe(code);
  },
);
