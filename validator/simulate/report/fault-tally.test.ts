import { expect, it } from 'vitest';
import { createFaultTally } from './fault-tally.ts';

const HOUR_MS = 3_600_000;

function tallyOf(regions: Readonly<Record<string, string>>) {
  const tally = createFaultTally();
  for (const [executor, region] of Object.entries(regions)) {
    tally.record({ kind: 'node-added', executor, region }, 0);
  }
  return tally;
}

it('lists faults with the hosts that they hit, from their beginning to their repair', () => {
  const tally = tallyOf({ a: 'eu', b: 'eu', c: 'us' });
  tally.record({ kind: 'fault-region', region: 'eu', lasts_ms: 9 }, 10);
  tally.record({ kind: 'fault-dies', executor: 'c', lasts_ms: 9 }, 11);
  tally.record({ kind: 'fault-clock', by_s: 60 }, 12);
  tally.record({ kind: 'repair', fault: 'region', region: 'eu' }, 19);
  tally.record({ kind: 'fault-registry', lasts_ms: 9 }, 20);
  tally.record({ kind: 'faults-end' }, 25);
  tally.record({ kind: 'fault-leave', executor: 'a' }, 30);
  tally.record({ kind: 'fault-leave', executor: 'b' }, 30);
  expect(tally.list()).toEqual([
    { kind: 'region', region: 'eu', executors: ['a', 'b'], fromMs: 10, toMs: 19, wallAheadMs: 0 },
    { kind: 'dies', region: null, executors: ['c'], fromMs: 11, toMs: 25, wallAheadMs: 0 },
    { kind: 'clock', region: null, executors: [], fromMs: 12, toMs: 12, wallAheadMs: 60_000 },
    { kind: 'registry', region: null, executors: [], fromMs: 20, toMs: 25, wallAheadMs: 60_000 },
    {
      kind: 'leave',
      region: null,
      executors: ['a', 'b'],
      fromMs: 30,
      toMs: null,
      wallAheadMs: 60_000,
    },
  ]);
});

it('explains a failed check by a fault of the host first, and then by one of a service', () => {
  const tally = tallyOf({ a: 'eu', b: 'us' });
  tally.record({ kind: 'fault-registry' }, 0);
  tally.record({ kind: 'fault-flap', executor: 'a' }, 0);
  tally.record({ kind: 'fault-slow', executor: 'b' }, 0);
  tally.record({ kind: 'repair', fault: 'flap', executor: 'a' }, HOUR_MS);
  tally.record({ kind: 'repair', fault: 'registry' }, HOUR_MS);
  const explained = (executor: string, hours: number) =>
    tally.explain(executor, hours * HOUR_MS)?.kind ?? null;
  expect(['a', 'b'].map((executor) => explained(executor, 0.5))).toEqual(['flap', 'registry']);
  expect(['a', 'b'].map((executor) => explained(executor, 7))).toEqual(['flap', null]);
  expect(explained('a', 8)).toBeNull();
});
