import { describe, expect, it } from 'vitest';
import { isBlocking } from '#shared/api/central/validator-routes.ts';
import { factsOf, NOW_MS, POLICY, resultOf, verdictWhen } from '../../test/fixtures/check-facts.ts';
import { modeOf } from './check-policy.ts';
import type { ProofFacts } from './measured.ts';
import { judgeAll } from './verdict.ts';

const ENFORCED = { modes: { power_limit: { mode: 'enforce' as const, from: null } } };
const PROOF: ProofFacts = {
  device: 'cpu',
  status: 'proven',
  reason: null,
  part: null,
  detail: '',
  parts: ['product', 'memory', 'disk'],
  ms: 10,
  wall_ms: 10,
  others: 5,
  expected_ms: null,
  roots: [],
  openings_hash: null,
  repeated: false,
};
const CAPPED = { power_limit_w: 300 };

describe('a shadow check', () => {
  it('records a failure without changing the verdict', () => {
    const result = resultOf('power_limit', factsOf({ device: CAPPED }));
    expect(result).toMatchObject({ passed: false, mode: 'shadow', verdict: 'verified' });
    expect([result.reason_code, isBlocking(result)]).toEqual(['GPU_POWER_CAPPED', false]);
    expect(result.message).toMatch(/changes no verdict/);
  });

  it('is enforced from the policy’s date on', () => {
    expect(resultOf('power_limit', factsOf({ device: CAPPED, checks: ENFORCED })).verdict).toBe(
      'failed',
    );
    const later = { power_limit: { mode: 'enforce' as const, from: '2030-01-01T00:00:00Z' } };
    const at = (atMs: number) =>
      modeOf({ id: 'power_limit', mode: 'shadow' }, { ...POLICY, modes: later }, { atMs });
    expect([at(NOW_MS), at(NOW_MS * 2)]).toEqual(['shadow', 'enforce']);
  });

  it('is enforced for a single reason if the policy names it', () => {
    const count = { mode: 'enforce' as const, from: '2026-12-01T00:00:00Z' };
    const modes = {
      pow_cpu: { mode: 'observe' as const, from: null },
      'pow_cpu POW_MISMATCH': count,
    };
    const of = (reason: string, atMs = NOW_MS) =>
      modeOf({ id: 'pow_cpu', mode: 'shadow' }, { ...POLICY, modes }, { atMs, reason });
    expect([of('POW_MISMATCH'), of('POW_TOO_SLOW'), of('POW_MISMATCH', 0)]).toEqual([
      'enforce',
      'observe',
      'observe',
    ]);
    // The default policy enforces POW_MISMATCH, which does not depend on speed.
    const wrong = { ...PROOF, status: 'failed', reason: 'POW_MISMATCH', part: 'memory' } as const;
    expect(verdictWhen({ measured: { proof: wrong } })).toBe('failed');
    const slow = { ...PROOF, ms: 900, expected_ms: 100 };
    expect(verdictWhen({ measured: { proof: slow, streaks: { pow_cpu: 9 } } })).toBe('verified');
  });
});

it('judges no further check after a fatal failure', () => {
  const strange = factsOf({
    inventory: { executor_id: '22222222-2222-4222-8222-222222222222' },
    device: CAPPED,
  });
  const { report } = judgeAll(strange, 0);
  expect(report.checks.filter((check) => !check.passed).map((check) => check.reason_code)).toEqual([
    'IDENTITY_CHANGED',
  ]);
});

it('counts a transient failure only in consecutive runs, and a passed check resets the streak', () => {
  const busy = { processes: 1, utilization_percent: 90 };
  const first = resultOf('gpu_idle_use', factsOf({ device: busy }));
  expect([first.passed, first.severity, first.streak]).toEqual([true, 'warning', 1]);
  const measured = { streaks: { gpu_idle_use: 1 } };
  const second = resultOf('gpu_idle_use', factsOf({ device: busy, measured }));
  expect([second.reason_code, second.verdict]).toEqual(['GPU_BUSY_OUTSIDE_POD', 'failed']);
  expect(resultOf('gpu_idle_use', factsOf({ measured })).streak).toBe(0);
  expect(resultOf('gpu_idle_use', factsOf({ measured, rented: true })).streak).toBe(1);
});

describe('a host that passed before and now differs', () => {
  const accepted = { spec: 'NVIDIA L4:1', gpu_uuids: ['GPU-1'] };
  const unread = factsOf({}).inventory?.gpu ?? null;
  if (unread === null) throw new Error('no inventory');

  it.each<[string, string, string, Parameters<typeof factsOf>[0]]>([
    [
      'a bad read',
      'gpu_inventory',
      'GPU_UNREADABLE',
      { inventory: { gpu: { ...unread, devices: [], error: 'NVML' } } },
    ],
    [
      'a card that is missing',
      'gpu_inventory',
      'GPU_COUNT_MISMATCH',
      { inventory: { gpu: { ...unread, devices: [] } } },
    ],
    [
      'another model',
      'gpu_inventory',
      'GPU_MODEL_MISMATCH',
      { device: { name: 'NVIDIA L4', memory_total_mib: 23_034 } },
    ],
    ['a host that has become another', 'spec_stable', 'SPEC_CHANGED', {}],
    ['cards that were exchanged', 'gpu_uuid_stable', 'GPU_SET_CHANGED', {}],
  ])('%s withholds the verdict at first, and fails in the next run', (_, id, reason, change) => {
    const seen = (streaks: Record<string, number>) => {
      const facts = factsOf({ ...change, measured: { accepted, streaks } });
      return resultOf(id, facts);
    };
    expect(seen({})).toMatchObject({ reason_code: reason, verdict: 'withheld', streak: 1 });
    expect(seen({}).message).toContain('seen 1 of 2 times in a row');
    expect(seen({ [id]: 1 })).toMatchObject({ reason_code: reason, verdict: 'failed', streak: 2 });
  });

  it('withholds the verdict for every other fault that may be an accident', () => {
    const checks = { min_free_disk_gib: 10_000 };
    const measured = { accepted, interval_ms: 900_000, streak_times: { disk_floor: NOW_MS } };
    expect(verdictWhen({ measured, checks })).toBe('withheld');
    const again = (laterMs: number) => {
      const streaks = { disk_floor: 1 };
      const facts = factsOf({ measured: { ...measured, streaks }, checks });
      return judgeAll({ ...facts, receivedMs: NOW_MS + laterMs }, 0);
    };
    // Inspections of a host without a verdict follow each other within seconds.
    expect(again(4_200)).toMatchObject({
      report: { verdict: 'withheld' },
      streaks: { disk_floor: 1 },
      streakTimes: { disk_floor: NOW_MS },
    });
    expect(again(900_000).report.verdict).toBe('failed');
    expect(again(-1).report.verdict).toBe('failed');
  });

  it('fails at once for faults that no accident causes', () => {
    const banned_gpus = unread.devices.map(({ uuid }) => uuid);
    expect(verdictWhen({ measured: { accepted }, checks: { banned_gpus } })).toBe('failed');
    const taken = [{ uuid: 'GPU-1', executor_id: 'another' }];
    expect(verdictWhen({ measured: { accepted, taken } })).toBe('failed');
  });

  it('accepts other cards within a day of an announced maintenance', () => {
    const spec = 'NVIDIA H100 80GB HBM3:1';
    const facts = factsOf({ measured: { accepted: { spec, gpu_uuids: ['GPU-1'] } } });
    const at = (maintenance_ms: number | null) =>
      judgeAll({ ...facts, executor: { ...facts.executor, maintenance_ms } }, 0).report.verdict;
    expect([at(NOW_MS), at(NOW_MS - 86_400_000), at(null)]).toEqual([
      'verified',
      'verified',
      'withheld',
    ]);
    expect([at(NOW_MS + 1), at(NOW_MS - 86_400_001)]).toEqual(['withheld', 'withheld']);
  });

  it('fails at once if the host was never accepted', () => {
    const inventory = { gpu: { ...unread, devices: [] } };
    expect(verdictWhen({ inventory })).toBe('failed');
  });
});
