import { expect, it } from 'vitest';
import { createActiveFaults } from './active-faults.ts';

it('lists faults from their beginning to their repair', () => {
  const faults = createActiveFaults();
  faults.record({ kind: 'fault-dies', executor: 'a', lasts_ms: 50 }, 10);
  faults.record({ kind: 'fault-region', region: 'eu', lasts_ms: 5 }, 11);
  faults.record({ kind: 'rented', executor: 'a' }, 12);
  expect(faults.list()).toEqual([
    { number: 1, kind: 'dies', executor: 'a', region: null, sinceMs: 10, untilMs: 60 },
    { number: 2, kind: 'region', executor: null, region: 'eu', sinceMs: 11, untilMs: 16 },
  ]);
  faults.record({ kind: 'repair', fault: 'region', region: 'eu', began: 2 }, 16);
  faults.record({ kind: 'repair', fault: 'flap', executor: 'a', began: 9 }, 17);
  expect(faults.list().map(({ kind }) => kind)).toEqual(['dies']);
  faults.record({ kind: 'repair', fault: 'dies', executor: 'a', began: 1 }, 60);
  expect(faults.list()).toEqual([]);
});

it('ends the one of two equal faults that its repair names', () => {
  const faults = createActiveFaults();
  faults.record({ kind: 'fault-registry', lasts_ms: 100 }, 0);
  faults.record({ kind: 'fault-registry', lasts_ms: 10 }, 5);
  faults.record({ kind: 'repair', fault: 'registry', began: 2 }, 15);
  expect(faults.list().map(({ untilMs }) => untilMs)).toEqual([100]);
});

it('omits events that do not last', () => {
  const faults = createActiveFaults();
  faults.record({ kind: 'fault-clock', by_s: 60 }, 0);
  faults.record({ kind: 'fault-leave', executor: 'a' }, 0);
  expect(faults.list()).toEqual([]);
});
