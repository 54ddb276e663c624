/** Checks of rented pods and their cards, and cases in which a genuine host passes. */
import { describe, expect, it } from 'vitest';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import {
  type Change,
  deadPod,
  type Failing,
  factsOf,
  resultOf,
  verdictWhen,
} from '../../test/fixtures/check-facts.ts';

const POD = '00000000-0000-4000-8000-0000000000aa';

it.each<Failing>([
  [
    'pod_alive',
    'POD_NOT_RUNNING',
    { rented: true, measured: { pods: [deadPod('HostReboot')], streaks: { pod_alive: 1 } } },
  ],
  [
    'gpu_drop',
    'RENTED_GPU_LOST',
    { rented: true, measured: { pods: [deadPod(null)], streaks: { gpu_drop: 1 } } },
  ],
  [
    'gpu_side_use',
    'GPU_PROCESS_OUTSIDE_POD',
    { device: { outside_processes: 1 }, measured: { streaks: { gpu_side_use: 1 } } },
  ],
  [
    'ledger',
    'POD_NOT_RENTED',
    { podIds: [], measured: { pods: [deadPod(null)], streaks: { ledger: 2 } } },
  ],
  [
    'ledger',
    'RENTED_POD_MISSING',
    { rented: true, podIds: [POD], measured: { pods: [], streaks: { ledger: 2 } } },
  ],
])('%s fails with %s', (id, reason, change) => {
  const result = resultOf(id, factsOf(change));
  expect([result.passed, result.reason_code]).toEqual([false, reason]);
  expect(result.remediation).toMatch(/\w+ \w+/);
});

it('permits two monitoring programs that the provider declared, and no other process', () => {
  const streaks = { gpu_side_use: 1 };
  const passes = (outside_processes: number, declared_processes: number) =>
    resultOf(
      'gpu_side_use',
      factsOf({ device: { outside_processes, declared_processes }, measured: { streaks } }),
    ).passed;
  expect([passes(2, 2), passes(2, 1), passes(3, 3)]).toEqual([true, false, false]);
});

it('passes a pod whose program exited', () => {
  const ended = factsOf({ rented: true, measured: { pods: [deadPod('ExitedNonZero')] } });
  expect(resultOf('pod_alive', ended)).toMatchObject({ passed: true, severity: 'warning' });
});

it('tolerates a rental that has just begun, and ignores removed pods', () => {
  const pods = [deadPod(null)];
  const begun = factsOf({ rented: true, podIds: [POD], measured: { pods: [] } });
  expect(resultOf('ledger', begun)).toMatchObject({ passed: true, streak: 1 });
  expect(resultOf('ledger', factsOf({ measured: { pods } })).message).toBe('unknown');
  const removed = [{ ...deadPod(null), phase: 'removed' }];
  expect(resultOf('ledger', factsOf({ podIds: [], measured: { pods: removed } })).message).toBe(
    'passed',
  );
});

it('ignores the pod of our own rental probe, but no other unrented pod', () => {
  const pods = [deadPod(null), { ...deadPod(null), id: 'another' }];
  const streaks = { ledger: 2 };
  const result = (own_pods: string[]) =>
    resultOf('ledger', factsOf({ podIds: [], measured: { pods, own_pods, streaks } }));
  expect(result(['pod', 'another'])).toMatchObject({ message: 'passed', streak: 0 });
  expect(result(['pod'])).toMatchObject({ reason_code: 'POD_NOT_RENTED', measured: 'another' });
});

describe('a genuine host', () => {
  const uuids = factsOf().inventory?.gpu.devices.map(({ uuid }) => uuid) ?? [];
  const accepted = { spec: 'NVIDIA H100 80GB HBM3:1', gpu_uuids: [...uuids, 'GPU-2'] };
  const gpu = (change: object) => {
    const { inventory } = factsOf();
    return { gpu: { ...(inventory?.gpu ?? ({} as Inventory['gpu'])), ...change } };
  };
  const pods = (phase: string, reason: string | null) => [
    { id: POD, phase, reason, gpu_uuids: uuids },
  ];

  it.each<[string, Change]>([
    [
      'with a driver that does not answer',
      {
        inventory: gpu({ devices: [], error: 'nvidia-smi does not answer' }),
        measured: { accepted, streaks: { gpu_uuid_stable: 5 } },
        checks: { modes: { gpu_inventory: { mode: 'observe', from: null } } },
      },
    ],
    [
      'whose MIG instances were recreated',
      {
        gpuType: 'H100 MIG 1g.10gb',
        device: {
          uuid: 'MIG-0',
          name: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb',
          memory_total_mib: 9_984,
          mig: { profile: '1g.10gb', parent_uuid: 'GPU-0' },
        },
        measured: {
          accepted: { ...accepted, spec: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb:1' },
          streaks: { gpu_uuid_stable: 5, spec_stable: 5 },
        },
      },
    ],
    ['that resets a card after an error', { device: { ecc_errors: 1 } }],
    [
      'that never received its pod',
      { rented: true, podIds: [POD], measured: { pods: [], streaks: { pod_alive: 5, ledger: 5 } } },
    ],
    ...['pending', 'pulling', 'starting', 'rebooting', 'backoff'].map((phase): [string, Change] => [
      `whose agent was restarted, with a pod that is ${phase}`,
      {
        rented: true,
        measured: { pods: pods(phase, 'HostReboot'), streaks: { pod_alive: 5 } },
      },
    ]),
    ...['ExitedNonZero', 'OOMKilled', 'StartFailed', 'ImageUnreachable', 'ImageNoSpace'].map(
      (reason): [string, Change] => [
        `whose pod ended with the reason ${reason}`,
        {
          rented: true,
          measured: { pods: pods('failed', reason), streaks: { pod_alive: 5 } },
        },
      ],
    ),
  ])('%s passes', (_, change) => {
    expect(verdictWhen(change)).toBe('verified');
  });

  it('has its verdict withheld while its driver loads', () => {
    expect(verdictWhen({ measured: { accepted } })).toBe('withheld');
  });
});
