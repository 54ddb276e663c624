import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Inventory } from '#shared/agent-api/inventory.ts';
import { isBlocking } from '#shared/central-api/validator-routes.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import type { Facts } from './check.ts';
import { CheckPolicy, modeOf, readCheckPolicy } from './check-policy.ts';
import { CHECKS } from './check-table.ts';
import type { LineFacts, Measured } from './measured.ts';
import { judgeAll } from './pipeline.ts';

const NOW_MS = 1_800_000_000_000;
const POLICY = readCheckPolicy();

type Change = {
  inventory?: Partial<Inventory>;
  device?: Partial<Inventory['gpu']['devices'][number]>;
  measured?: Partial<Measured>;
  rented?: boolean;
  podIds?: string[];
  banned?: boolean;
  collateral?: boolean;
  probe?: Facts['probe'];
  checks?: Partial<CheckPolicy>;
};

/** An honest host with what is changed. */
function factsOf(change: Change = {}): Facts {
  const { inventory, device, measured, rented, podIds, checks, probe } = change;
  const { facts } = checkRun({ atMs: NOW_MS });
  if (facts.inventory === null) throw new Error('no inventory');
  const { gpu } = facts.inventory;
  const devices = gpu.devices.map((each) => ({ ...each, ...device }));
  return {
    ...facts,
    executor: {
      ...facts.executor,
      rented: rented ?? false,
      pod_ids: podIds ?? null,
      provider_banned: change.banned ?? false,
      collateral_deposited: change.collateral ?? true,
    },
    probe: probe ?? facts.probe,
    inventory: { ...facts.inventory, gpu: { ...gpu, devices }, ...inventory },
    measured: { ...facts.measured, ...measured },
    policy: { ...facts.policy, checks: { ...POLICY, ...checks } },
  };
}

function resultOf(id: string, facts: Facts) {
  const { report, streaks } = judgeAll(facts, 0);
  const result = report.checks.find((check) => check.check_id === id);
  if (result === undefined) throw new Error(`no check ${id}`);
  return { ...result, verdict: report.verdict, streak: streaks[id] ?? 0 };
}

const ENFORCED = { modes: { power_limit: { mode: 'enforce' as const, from: null } } };
const CAPPED = { power_limit_w: 300 };

it('names each check once, with a remedy for each of its reasons', () => {
  expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length);
  const empty = CHECKS.filter(({ remedies }) =>
    Object.values(remedies).some((text) => text === ''),
  );
  expect([empty, CHECKS.filter(({ remedies }) => Object.keys(remedies).length === 0)]).toEqual([
    [],
    [],
  ]);
});

it('stands in the README as it is', () => {
  const readme = readFileSync('README.md', 'utf8');
  const rows = CHECKS.map(({ id, mode, whileRented, detects, remedies }) => {
    const reasons = Object.keys(remedies).map((reason) => `\`${reason}\``);
    const when = whileRented ? `${mode}, rented` : mode;
    return `| \`${id}\` | ${when} | ${detects} | ${reasons.join(' ')} |`;
  });
  expect(rows.filter((row) => !readme.includes(row))).toEqual([]);
  const fields = Object.keys(CheckPolicy.shape);
  expect(fields.filter((field) => !readme.includes(`\`${field}\``))).toEqual([]);
});

it('finds no fault with an honest host, whatever its agent does not tell', () => {
  const { report } = judgeAll(factsOf(), 0);
  expect(report.checks.filter((check) => !check.passed)).toEqual([]);
  expect(report.checks.find(({ check_id }) => check_id === 'cpu_truth')?.message).toBe('unknown');
});

describe('a shadow check', () => {
  it('is on record and changes no verdict', () => {
    const result = resultOf('power_limit', factsOf({ device: CAPPED }));
    expect(result).toMatchObject({ passed: false, mode: 'shadow', verdict: 'verified' });
    expect([result.reason_code, isBlocking(result)]).toEqual(['GPU_POWER_CAPPED', false]);
    expect(result.message).toMatch(/changes no verdict/);
  });

  it('counts once the policy says so, from its date on', () => {
    expect(resultOf('power_limit', factsOf({ device: CAPPED, checks: ENFORCED })).verdict).toBe(
      'failed',
    );
    const later = { power_limit: { mode: 'enforce' as const, from: '2030-01-01T00:00:00Z' } };
    expect(modeOf({ id: 'power_limit', mode: 'shadow' }, { ...POLICY, modes: later }, NOW_MS)).toBe(
      'shadow',
    );
    expect(
      modeOf({ id: 'power_limit', mode: 'shadow' }, { ...POLICY, modes: later }, NOW_MS * 2),
    ).toBe('enforce');
  });
});

it('stops at a fatal failure: what comes after says nothing', () => {
  const strange = factsOf({
    inventory: { executor_id: '22222222-2222-4222-8222-222222222222' },
    device: CAPPED,
  });
  const { report } = judgeAll(strange, 0);
  expect(report.checks.filter((check) => !check.passed).map((check) => check.reason_code)).toEqual([
    'IDENTITY_CHANGED',
  ]);
});

it('takes a reason that may pass only when it is seen again, and forgets it when all is well', () => {
  const busy = { processes: 1, utilization_percent: 90 };
  const first = resultOf('gpu_idle_use', factsOf({ device: busy }));
  expect([first.passed, first.severity, first.streak]).toEqual([true, 'warning', 1]);
  const measured = { streaks: { gpu_idle_use: 1 } };
  const second = resultOf('gpu_idle_use', factsOf({ device: busy, measured }));
  expect([second.reason_code, second.verdict]).toEqual(['GPU_BUSY_OUTSIDE_POD', 'failed']);
  expect(resultOf('gpu_idle_use', factsOf({ measured })).streak).toBe(0);
  expect(resultOf('gpu_idle_use', factsOf({ measured, rented: true })).streak).toBe(1);
});

it('warns of a clock that drifts and of a driver whose date is to come', () => {
  const drifting = factsOf({ inventory: { collected_ms: NOW_MS - 6_000 } });
  expect(resultOf('clock', drifting)).toMatchObject({ passed: true, severity: 'warning' });
  // The answer took its time on the way: the host's clock was right when it was asked.
  const slow = factsOf({
    inventory: { collected_ms: NOW_MS - 20_000 },
    measured: { asked_ms: NOW_MS - 21_000 },
  });
  expect(resultOf('clock', slow)).toMatchObject({ message: 'passed', severity: 'info' });
});

const old = (from: string) => ({ driver_min: { version: '999.1', from } });
const sources = {
  ...{ pci_gpus: 1, driver_gpus: null, driver_library_sha256: null, cpus_present: null },
  ...{ memory_kib: null, disk_kib: null, disk_writable: null },
};

const OPEN = { firewall: 'unavailable', disk_quota: 'none', seccomp: true } as const;
const SHUT = { opened: 0, reached: 0, problem: 'busy', refused: true, repeated: false };
const UNREACHED = { registry: 'unreachable', problem: 'no answer', repeated: false } as const;
const LINE: LineFacts = {
  ...{ samples: 3, down_kbit: 200_000, up_kbit: 200_000 },
  ...{ last_down_kbit: 200_000, last_up_kbit: 200_000, false_stream: null, refusals: 0 },
  ...{ others_down_kbit: 900_000, others_up_kbit: 900_000, measured_ms: 1, repeated: false },
};
const templates = (state: 'present' | 'missing' | 'unknown') => ({
  images: [{ image: 'ubuntu:24.04', state, problem: '' }],
  repeated: false,
});
const deadPod = (reason: string | null) => ({
  ...{ id: 'pod', phase: 'failed', reason, gpu_uuids: ['GPU-gone'] },
});
const POD = '00000000-0000-4000-8000-0000000000aa';
const RENTAL: Measured['rental'] = {
  ...{ status: 'passed', step: null, detail: '', ms: 1, at_ms: 1, memory: null, repeated: false },
};
const SYSBOX = {
  ...{ version: '28', storage_driver: 'overlay2', cgroup_version: '2' },
  ...{ gpu_runtime: true, sysbox_runtime: true },
};
const nestedProbe = (status: 'ok' | 'failed' | 'skipped') => ({
  ...{ ok: true, reason_code: null, simulated: false },
  steps: [{ name: 'docker_in_docker', status, ms: 3, message: '' }],
});
const failedProbe = (reason_code: string | null) => ({
  ...{ ok: false, reason_code, steps: [], simulated: false },
});

it('excuses a pod that its own program ended, and a line that is slow for a moment', () => {
  const ended = factsOf({ rented: true, measured: { pods: [deadPod('ExitedNonZero')] } });
  expect(resultOf('pod_alive', ended)).toMatchObject({ passed: true, severity: 'warning' });
  const slow = (line: LineFacts) => resultOf('bandwidth', factsOf({ measured: { line } }));
  expect(slow({ ...LINE, down_kbit: 60_000 })).toMatchObject({ passed: true, streak: 1 });
  expect(slow({ ...LINE, down_kbit: 60_000, others_down_kbit: 60_000 }).message).toBe('unknown');
  expect(slow({ ...LINE, samples: 0 }).message).toBe('unknown');
});

it('blames no honest host for a rental that has just begun, or for a pod that shows its limit', () => {
  const pods = [deadPod(null)];
  const begun = factsOf({ rented: true, podIds: [POD], measured: { pods: [] } });
  expect(resultOf('ledger', begun)).toMatchObject({ passed: true, streak: 1 });
  expect(resultOf('ledger', factsOf({ measured: { pods } })).message).toBe('unknown');
  const gone = [{ ...deadPod(null), phase: 'removed' }];
  expect(resultOf('ledger', factsOf({ podIds: [], measured: { pods: gone } })).message).toBe(
    'passed',
  );
  const memory = { given_kib: 900, seen_kib: 900 };
  const inside = factsOf({ measured: { rental: { ...RENTAL, memory } } });
  expect(resultOf('mem_truth', inside).message).toBe('passed');
});

it('takes containers in containers for proven only where they are offered and were tried', () => {
  const nested = (change: Change) => resultOf('dind_runtime', factsOf(change)).message;
  const probe = nestedProbe('ok');
  expect(nested({ inventory: { docker: SYSBOX }, probe })).toBe('passed');
  expect(nested({ inventory: { docker: SYSBOX }, probe: nestedProbe('skipped') })).toBe('unknown');
  expect(nested({ inventory: { docker: SYSBOX } })).toBe('unknown');
  expect(nested({ probe })).toBe('unknown');
});

describe('a host that is honest', () => {
  const uuids = factsOf().inventory?.gpu.devices.map(({ uuid }) => uuid) ?? [];
  const accepted = { spec: 'NVIDIA H100 80GB HBM3:1', gpu_uuids: [...uuids, 'GPU-2'] };
  const verdictWhen = (change: Change) => judgeAll(factsOf(change), 0).report.verdict;
  const gpu = (change: object) => {
    const { inventory } = factsOf();
    return { gpu: { ...(inventory?.gpu ?? ({} as Inventory['gpu'])), ...change } };
  };
  const pods = (phase: string, reason: string | null) => [
    { id: POD, phase, reason, gpu_uuids: uuids },
  ];

  it.each<[string, Change]>([
    ['with a driver that is being loaded', { measured: { accepted } }],
    [
      'with a driver that does not answer',
      {
        inventory: gpu({ devices: [], error: 'nvidia-smi does not answer' }),
        measured: { accepted, streaks: { gpu_uuid_stable: 5 } },
        checks: { modes: { gpu_inventory: { mode: 'observe', from: null } } },
      },
    ],
    [
      'whose parts of a card were made anew',
      {
        device: { mig: { profile: '1g.10gb', parent_uuid: 'GPU-0' } },
        measured: { accepted, streaks: { gpu_uuid_stable: 5 } },
      },
    ],
    ['that resets a card after an error', { device: { ecc_errors: 1 } }],
    [
      'that has not been told of its pod',
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
        `whose pod ended by ${reason}`,
        {
          rented: true,
          measured: { pods: pods('failed', reason), streaks: { pod_alive: 5 } },
        },
      ],
    ),
  ])('%s is not punished', (_, change) => {
    expect(verdictWhen(change)).toBe('verified');
  });
});

it('asks no host to have what its registry does not tell', () => {
  const message = (state: 'present' | 'missing' | 'unknown') =>
    resultOf('template_cache', factsOf({ measured: { templates: templates(state) } })).message;
  expect([message('present'), message('unknown')]).toEqual(['passed', 'unknown']);
  expect(message('missing')).toMatch(/seen 1 of 2/);
});

it('bans by the lists of the policy, too', () => {
  const { miner_hotkey: hotkey } = factsOf().executor;
  const uuid = factsOf().inventory?.gpu.devices[0]?.uuid ?? '';
  const banned_hotkeys = [Hotkey.parse(hotkey)];
  expect(resultOf('banned', factsOf({ checks: { banned_hotkeys } })).reason_code).toBe(
    'PROVIDER_BANNED',
  );
  expect(resultOf('banned', factsOf({ checks: { banned_gpus: [uuid] } })).reason_code).toBe(
    'GPU_BANNED',
  );
});

it.each<[string, string, Change]>([
  ['agent_version', 'AGENT_OUTDATED', { checks: { min_agent_version: '0.2.0' } }],
  ['gpu_count', 'GPU_COUNT_IMPLAUSIBLE', { checks: { max_gpus: 0 } }],
  ['gpu_model', 'GPU_MODEL_UNKNOWN', { device: { name: 'NVIDIA X1' } }],
  ['gpu_vram', 'GPU_VRAM_MISMATCH', { device: { memory_total_mib: 24_576 } }],
  [
    'gpu_sources_agree',
    'GPU_SOURCES_DISAGREE',
    { inventory: { sources: { ...sources, pci_gpus: 0 } } },
  ],
  ['driver_min', 'DRIVER_TOO_OLD', { checks: old('2020-01-01T00:00:00Z') }],
  [
    'spec_stable',
    'SPEC_CHANGED',
    { measured: { accepted: { spec: 'NVIDIA L4:1', gpu_uuids: [] } } },
  ],
  [
    'gpu_uuid_stable',
    'GPU_SET_CHANGED',
    {
      measured: {
        accepted: { spec: 'NVIDIA H100 80GB HBM3:1', gpu_uuids: ['GPU-1'] },
        streaks: { gpu_uuid_stable: 1 },
      },
    },
  ],
  [
    'gpu_health',
    'GPU_UNHEALTHY',
    { device: { ecc_errors: 1 }, measured: { streaks: { gpu_health: 1 } } },
  ],
  [
    'gpu_wedge',
    'GPU_WEDGED',
    { device: { utilization_percent: 100 }, measured: { streaks: { gpu_wedge: 1 } } },
  ],
  ['mem_truth', 'MEMORY_OVERSTATED', { inventory: { sources: { ...sources, memory_kib: 1_000 } } }],
  ['disk_floor', 'DISK_LOW', { checks: { min_free_disk_gib: 10_000 } }],
  [
    'disk_health',
    'DISK_READONLY',
    { inventory: { sources: { ...sources, disk_writable: false } } },
  ],
  ['disk_health', 'DISK_OVERSTATED', { inventory: { sources: { ...sources, disk_kib: 5 } } }],
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
  [
    'mem_truth',
    'MEMORY_OVERSTATED',
    { measured: { rental: { ...RENTAL, memory: { given_kib: 1_040, seen_kib: 1_000 } } } },
  ],
  [
    'dind_runtime',
    'DIND_UNAVAILABLE',
    { inventory: { docker: SYSBOX }, probe: nestedProbe('failed') },
  ],
  ['banned', 'PROVIDER_BANNED', { banned: true }],
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
        sources: { ...sources, side_disk_kib: 101 * 2 ** 20 },
        docker: { ...SYSBOX, sysbox_runtime: false },
      },
      measured: { streaks: { host_side_load: 2 } },
    },
  ],
  ['cpu_quota', 'CPU_QUOTA_EXCEEDS_HOST', { probe: failedProbe('CPU_QUOTA_EXCEEDS_HOST') }],
  ['container_start', 'CONTAINER_START_FAILED', { probe: failedProbe(null) }],
  ['disk_quota', 'QUOTA_NOT_ENFORCED', { inventory: { isolation: OPEN } }],
  ['firewall', 'NETWORK_POLICY_DRIFT', { inventory: { isolation: OPEN } }],
  [
    'backup_engine',
    'BACKUP_ENGINE_MISSING',
    { inventory: { sources: { ...sources, restic: null } } },
  ],
  ['ports', 'PORTS_REFUSED', { measured: { ports: SHUT, streaks: { ports: 2 } } }],
  [
    'ports',
    'PORTS_PARTIAL',
    {
      measured: {
        ports: { ...SHUT, opened: 300, reached: 2, refused: false },
        streaks: { ports: 1 },
      },
    },
  ],
  ['egress', 'REGISTRY_UNREACHABLE', { measured: { egress: UNREACHED, streaks: { egress: 1 } } }],
  [
    'template_cache',
    'TEMPLATE_NOT_CACHED',
    { measured: { templates: templates('missing'), streaks: { template_cache: 1 } } },
  ],
  ['bandwidth', 'BANDWIDTH_LOW', { measured: { line: { ...LINE, up_kbit: 49_000 } } }],
  [
    'bandwidth',
    'BANDWIDTH_LOW',
    { measured: { line: { ...LINE, up_kbit: 99_000 }, streaks: { bandwidth: 1 } } },
  ],
  ['bandwidth', 'BANDWIDTH_REFUSED', { measured: { line: { ...LINE, refusals: 3 } } }],
])('%s fails with %s', (id, reason, change) => {
  const result = resultOf(id, factsOf(change));
  expect([result.passed, result.reason_code]).toEqual([false, reason]);
  expect(result.remediation).toMatch(/\w+ \w+/);
});

it('knows no policy with wrong lines', () => {
  const wrong = { ...POLICY, modes: { clock: { mode: 'sometimes', from: null } } };
  expect(CheckPolicy.safeParse(wrong).success).toBe(false);
  expect(() => readCheckPolicy('/nowhere.json')).toThrow('/nowhere.json');
});
