import { expect, it } from 'vitest';
import type { VolumeCopy } from '../../platform/database/tables.ts';
import { acceptsSnapshot, cannotRestore, copyStep, pauseAfter } from './volume.plan.ts';
import { COPY_STATES, sourcesOf, volumeStatus } from './volume.state.ts';

const COPY: VolumeCopy = {
  id: 'c',
  volume_id: 'v',
  account_id: 'a',
  pod_id: 'p',
  executor_id: 'e',
  state: 'restoring',
  source_snapshot_id: 's',
  operation_id: null,
  stage: null,
  percent: 0,
  attempts: 0,
  retry_at: null,
  error_code: null,
  error_message: null,
  seen_at: 0,
  created_at: 0,
  updated_at: 0,
};
const FACTS = { isPresent: true, isPodGoing: false, nowMs: 1_000 };

it.each([
  [{}, { isPresent: false }, 'put'],
  [{ retry_at: 1_001 }, { isPresent: false }, 'wait'],
  [{ source_snapshot_id: null }, {}, 'attach'],
  [{}, {}, 'begin'],
  [{ retry_at: 1_001 }, {}, 'wait'],
  [{ retry_at: 1_000 }, {}, 'begin'],
  [{ operation_id: 'o' }, {}, 'poll'],
  [{ operation_id: 'o' }, { isPodGoing: true }, 'wait'],
  [{ error_code: 'SnapshotMissing', attempts: 1 }, {}, 'wait'],
  [{ state: 'attached' }, {}, 'wait'],
  [{ state: 'attached', retry_at: 1_001 }, {}, 'wait'],
  [{ state: 'attached', retry_at: 1_000 }, {}, 'begin'],
  [{ state: 'attached', retry_at: 1_001, operation_id: 'o' }, {}, 'poll'],
  [{ state: 'attached' }, { isPresent: false }, 'wait'],
  [{ state: 'attached' }, { isPresent: false, nowMs: 600_000 }, 'lost'],
  [{ state: 'saving' }, {}, 'begin'],
  [{ state: 'saving', operation_id: 'o' }, {}, 'poll'],
  [{ state: 'saving', error_code: 'SnapshotMissing', attempts: 99 }, {}, 'begin'],
  [{ state: 'saving' }, { isPresent: false }, 'wait'],
  [{ state: 'saving' }, { isPresent: false, nowMs: 600_000 }, 'lost'],
  [{ state: 'dropping' }, { isPresent: false }, 'drop'],
] as const)('chooses for the copy %j and the facts %j the step %s', (copy, facts, step) => {
  expect(copyStep({ ...COPY, ...copy }, { ...FACTS, ...facts })).toBe(step);
});

it('stops a restore after a fatal error or six attempts, and never stops a save', () => {
  expect(cannotRestore({ ...COPY, error_code: 'RepositoryUnreachable', attempts: 5 })).toBe(false);
  expect(cannotRestore({ ...COPY, error_code: 'RepositoryUnreachable', attempts: 6 })).toBe(true);
  expect(cannotRestore({ ...COPY, error_code: 'NoSpace', attempts: 1 })).toBe(true);
  expect(cannotRestore({ ...COPY, state: 'saving', error_code: 'NoSpace', attempts: 9 })).toBe(
    false,
  );
});

it.each([
  ['full', {}, true],
  ['partial', {}, false],
  ['partial', { state: 'attached' }, true],
  ['partial', { error_code: 'Partial', attempts: 2 }, false],
  ['partial', { error_code: 'Partial', attempts: 3 }, true],
  ['partial', { error_code: 'RepositoryUnreachable', attempts: 99 }, false],
] as const)('decides on a %s snapshot of the copy %j: accepted %s', (quality, copy, isTaken) => {
  expect(acceptsSnapshot(quality, { ...COPY, state: 'saving', ...copy })).toBe(isTaken);
});

it('doubles the pause after each attempt, up to ten minutes', () => {
  expect([1, 2, 3, 8, 1_000].map(pauseAfter)).toEqual([5_000, 10_000, 20_000, 600_000, 600_000]);
});

it('allows no state change from dropping', () => {
  expect(COPY_STATES.filter((state) => sourcesOf(state).includes('dropping'))).toEqual([]);
  expect(sourcesOf('dropping')).toEqual(['restoring', 'attached', 'saving']);
});

it.each([
  [null, null, 'available'],
  [null, 'dropping', 'available'],
  ['p', null, 'attached'],
  ['p', 'restoring', 'restoring'],
  [null, 'saving', 'saving'],
] as const)('gives a volume with pod %s and copy state %s the status %s', (podId, copy, status) => {
  expect(volumeStatus(podId, copy)).toBe(status);
});
