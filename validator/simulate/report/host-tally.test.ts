import { describe, expect, it } from 'vitest';
import { CHECK_EVENT } from '../world/check-event.ts';
import { detectionOf } from './detection.ts';
import { createHostTally, qualityOf } from './host-tally.ts';
import type { ExpectedDetection } from './report.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const EXPECTED: ExpectedDetection = { outcome: 'fails', checks: ['gpu_vram A'], inspections: 1 };

function tallyOf(hosts: Readonly<Record<string, { cheat?: string; region?: string }>>) {
  const tally = createHostTally();
  for (const [executor, details] of Object.entries(hosts)) {
    tally.record({ kind: 'node-added', executor, gpu: 'H100', gpus: 2, ...details }, 0);
  }
  const qualityAt = (executor: string, ms: number) => {
    const host = tally.get(executor);
    return host === undefined ? null : qualityOf(host, ms);
  };
  const check = (executor: string, atMs: number, reason?: string) => {
    const verdict = reason === undefined ? 'verified' : 'failed';
    tally.record({ kind: CHECK_EVENT, status: 200, executor, verdict, reason }, atMs);
  };
  return { ...tally, qualityAt, check };
}

describe('quality of hosts', () => {
  it('is the share of the time without faults, in which overlapping faults count once', () => {
    const tally = tallyOf({ a: { region: 'eu' }, b: { region: 'us' } });
    tally.record({ kind: 'fault-dies', executor: 'a' }, 6 * HOUR_MS);
    tally.record({ kind: 'fault-region', region: 'eu' }, 8 * HOUR_MS);
    tally.record({ kind: 'repair', executor: 'a', fault: 'dies' }, 10 * HOUR_MS);
    tally.record({ kind: 'repair', region: 'eu', fault: 'region' }, 12 * HOUR_MS);
    expect(tally.qualityAt('a', DAY_MS)).toBeCloseTo(0.75);
    expect(tally.qualityAt('b', DAY_MS)).toBe(1);
  });

  it('ends all faults with the phase in which the market comes to rest', () => {
    const tally = tallyOf({ a: {} });
    tally.record({ kind: 'fault-dies', executor: 'a' }, 6 * HOUR_MS);
    tally.record({ kind: 'fault-leave', executor: 'a' }, 8 * HOUR_MS);
    tally.record({ kind: 'faults-end' }, 12 * HOUR_MS);
    expect(tally.qualityAt('a', DAY_MS)).toBeCloseTo(0.75);
  });

  it('counts a fault that still lasts, ignores slow starts, and is 0 for a cheat', () => {
    const tally = tallyOf({ a: {}, b: {}, c: { cheat: 'model' } });
    tally.record({ kind: 'fault-card', executor: 'a' }, 12 * HOUR_MS);
    tally.record({ kind: 'fault-slow', executor: 'b' }, 12 * HOUR_MS);
    expect(tally.qualityAt('a', DAY_MS)).toBeCloseTo(0.5);
    expect(tally.qualityAt('b', DAY_MS)).toBe(1);
    expect(tally.qualityAt('c', DAY_MS)).toBe(0);
  });
});

describe('detection', () => {
  it('has the delay of each cheat, and its reasons', () => {
    const tally = tallyOf({ a: { cheat: 'model' }, b: { cheat: 'model' }, c: { cheat: 'clock' } });
    tally.check('a', HOUR_MS, 'GPU_VRAM_MISMATCH');
    tally.check('b', HOUR_MS);
    tally.check('b', 7 * HOUR_MS, 'GPU_VRAM_MISMATCH');
    tally.check('b', 9 * HOUR_MS, 'OTHER');
    tally.check('c', 9 * HOUR_MS);
    expect(detectionOf([...tally.hosts()], () => EXPECTED).cheats).toEqual([
      {
        cheat: 'clock',
        hosts: 1,
        found: 0,
        expected: EXPECTED,
        missed_inspections: [1],
        delays_hours: [],
        reasons: {},
      },
      {
        cheat: 'model',
        hosts: 2,
        found: 2,
        expected: EXPECTED,
        missed_inspections: [],
        delays_hours: [1, 7],
        reasons: { GPU_VRAM_MISMATCH: 2 },
      },
    ]);
  });

  it('separates false positives from failures that a fault explains', () => {
    const tally = tallyOf({ a: {} });
    tally.check('a', HOUR_MS, 'PORTS_CLOSED');
    tally.record({ kind: 'fault-flap', executor: 'a' }, 2 * HOUR_MS);
    tally.check('a', 3 * HOUR_MS, 'UNREACHABLE');
    tally.record({ kind: 'repair', executor: 'a', fault: 'flap' }, 4 * HOUR_MS);
    tally.check('a', 5 * HOUR_MS, 'UNREACHABLE');
    tally.check('a', 12 * HOUR_MS);
    expect(detectionOf([...tally.hosts()], () => EXPECTED).honest).toEqual({
      hosts: 1,
      checks: 4,
      failed_in_fault: 2,
      failed_by_fault: { flap: 2 },
      failed_in_service_fault: {},
      failed_without_fault: { PORTS_CLOSED: 1 },
    });
  });

  it('counts failures by a fault of a service neither as false positives nor as findings', () => {
    const tally = tallyOf({ a: {}, b: { cheat: 'model' } });
    tally.record({ kind: 'fault-registry' }, HOUR_MS);
    tally.check('a', 2 * HOUR_MS, 'EGRESS_BLOCKED');
    tally.check('b', 2 * HOUR_MS, 'EGRESS_BLOCKED');
    tally.record({ kind: 'fault-payments-late' }, 2 * HOUR_MS);
    tally.record({ kind: 'repair', fault: 'registry' }, 3 * HOUR_MS);
    tally.check('a', 3.5 * HOUR_MS, 'EGRESS_BLOCKED');
    tally.check('a', 5 * HOUR_MS, 'EGRESS_BLOCKED');
    tally.record({ kind: 'fault-clock', by_s: 60 }, 6 * HOUR_MS);
    tally.check('a', 6.5 * HOUR_MS, 'CLOCK_SKEW');
    tally.check('a', 8 * HOUR_MS, 'CLOCK_SKEW');
    const { cheats, honest } = detectionOf([...tally.hosts()], () => EXPECTED);
    expect(honest).toMatchObject({
      failed_in_fault: 0,
      failed_in_service_fault: { 'registry: EGRESS_BLOCKED': 2, 'clock: CLOCK_SKEW': 1 },
      failed_without_fault: { EGRESS_BLOCKED: 1, CLOCK_SKEW: 1 },
    });
    expect(cheats).toMatchObject([{ cheat: 'model', found: 0 }]);
  });
});
