/** Checks of a host: agent, clock, processors, memory, disk and engine. */
import { expect, it } from 'vitest';
import {
  type Change,
  type Failing,
  factsOf,
  NOW_MS,
  resultOf,
  sourcesWith,
} from '../../test/fixtures/check-facts.ts';
import type { Measured } from './measured.ts';

const OPEN = { firewall: 'unavailable', disk_quota: 'none', seccomp: true } as const;
const RENTAL: Measured['rental'] = {
  status: 'passed',
  step: null,
  detail: '',
  ms: 1,
  at_ms: 1,
  memory: null,
  pods: [],
  refused: false,
  repeated: false,
};
const SYSBOX = {
  version: '28',
  storage_driver: 'overlay2',
  cgroup_version: '2',
  gpu_runtime: true,
  sysbox_runtime: true,
};
const nestedProbe = (status: 'ok' | 'failed' | 'skipped') => ({
  ok: true,
  reason_code: null,
  simulated: false,
  steps: [{ name: 'docker_in_docker', status, ms: 3, message: '' }],
});
const failedProbe = (reason_code: string | null) => ({
  ok: false,
  reason_code,
  steps: [],
  simulated: false,
});

it('prints the required value of the policy beside the measured one', () => {
  const low = resultOf('disk_floor', factsOf({ checks: { min_free_disk_gib: 10_000 } }));
  expect(low).toMatchObject({
    required: 'at least `min_free_disk_gib` (10000) of the policy are free',
  });
  expect(low?.measured).toMatch(/^\d+ GiB$/);
  expect(resultOf('clock', factsOf())?.required).toContain('`clock_fail_ms` (30000)');
});

it.each<Failing>([
  ['agent_version', 'AGENT_OUTDATED', { checks: { min_agent_version: '0.2.0' } }],
  ['mem_truth', 'MEMORY_OVERSTATED', { inventory: sourcesWith({ memory_kib: 1_000 }) }],
  [
    'mem_truth',
    'MEMORY_OVERSTATED',
    { measured: { rental: { ...RENTAL, memory: { given_kib: 1_040, seen_kib: 1_000 } } } },
  ],
  ['disk_floor', 'DISK_LOW', { checks: { min_free_disk_gib: 10_000 } }],
  ['disk_health', 'DISK_READONLY', { inventory: sourcesWith({ disk_writable: false }) }],
  ['disk_health', 'DISK_OVERSTATED', { inventory: sourcesWith({ disk_kib: 5 }) }],
  [
    'dind_runtime',
    'DIND_UNAVAILABLE',
    { inventory: { docker: SYSBOX }, probe: nestedProbe('failed') },
  ],
  ['collateral', 'COLLATERAL_MISSING', { collateral: false }],
  [
    'host_side_load',
    'HOST_SIDE_LOAD',
    {
      inventory: { cpu: { model: 'x', cores: 64, utilization_percent: 50 } },
      measured: { streaks: { host_side_load: 2 } },
    },
  ],
  [
    'host_side_load',
    'HOST_SIDE_LOAD',
    {
      inventory: {
        ...sourcesWith({ side_disk_kib: 101 * 2 ** 20 }),
        docker: { ...SYSBOX, sysbox_runtime: false },
      },
      measured: { streaks: { host_side_load: 2 } },
    },
  ],
  ['cpu_quota', 'CPU_QUOTA_EXCEEDS_HOST', { probe: failedProbe('CPU_QUOTA_EXCEEDS_HOST') }],
  ['container_start', 'CONTAINER_START_FAILED', { probe: failedProbe(null) }],
  ['disk_quota', 'QUOTA_NOT_ENFORCED', { inventory: { isolation: OPEN } }],
  ['firewall', 'NETWORK_POLICY_DRIFT', { inventory: { isolation: OPEN } }],
  ['backup_engine', 'BACKUP_ENGINE_MISSING', { inventory: sourcesWith({ restic: null }) }],
])('%s fails with %s', (id, reason, change) => {
  const result = resultOf(id, factsOf(change));
  expect([result.passed, result.reason_code]).toEqual([false, reason]);
  expect(result.remediation).toMatch(/\w+ \w+/);
});

it('warns of a clock that drifts, and distinguishes a slow answer from a wrong clock', () => {
  const drifting = factsOf({ inventory: { collected_ms: NOW_MS - 6_000 } });
  expect(resultOf('clock', drifting)).toMatchObject({ passed: true, severity: 'warning' });
  // The answer was slow: the host's clock was right when it was sent.
  const slow = factsOf({
    inventory: { collected_ms: NOW_MS - 20_000 },
    measured: { asked_ms: NOW_MS - 21_000 },
  });
  expect(resultOf('clock', slow)).toMatchObject({ message: 'passed', severity: 'info' });
});

it('passes a host whose pod sees its whole memory limit', () => {
  const memory = { given_kib: 900, seen_kib: 900 };
  const inside = factsOf({ measured: { rental: { ...RENTAL, memory } } });
  expect(resultOf('mem_truth', inside).message).toBe('passed');
});

it('passes nested containers only if the host offers them and the probe tried them', () => {
  const nested = (change: Change) => resultOf('dind_runtime', factsOf(change)).message;
  const probe = nestedProbe('ok');
  expect(nested({ inventory: { docker: SYSBOX }, probe })).toBe('passed');
  expect(nested({ inventory: { docker: SYSBOX }, probe: nestedProbe('skipped') })).toBe('unknown');
  expect(nested({ inventory: { docker: SYSBOX } })).toBe('unknown');
  expect(nested({ probe })).toBe('unknown');
});
