/** Checks of cards: model, MIG instances, state, bans. */
import { expect, it } from 'vitest';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import {
  type Failing,
  factsOf,
  POLICY,
  resultOf,
  sourcesWith,
} from '../../test/fixtures/check-facts.ts';
import { loadOf } from './measured.ts';

const driverFrom = (from: string) => ({ driver_min: { version: '999.1', from } });
const LISTED = { spec: 'NVIDIA H100 80GB HBM3:1' };
const CARD = factsOf().inventory?.gpu.devices[0]?.uuid ?? '';

it('states in the verdict of an unknown model that the node earns nothing', () => {
  const unknown = resultOf('gpu_model', factsOf({ device: { name: 'NVIDIA X1' } }));
  expect(unknown).toMatchObject({
    measured: 'NVIDIA X1',
    message: expect.stringContaining('the node earns no weight'),
    remediation: expect.stringContaining('earns no weight'),
  });
});

it.each<Failing>([
  ['gpu_count', 'GPU_COUNT_IMPLAUSIBLE', { checks: { max_gpus: 0 } }],
  ['gpu_model', 'GPU_MODEL_UNKNOWN', { device: { name: 'NVIDIA X1' } }],
  ['gpu_vram', 'GPU_VRAM_MISMATCH', { device: { memory_total_mib: 24_576 } }],
  ['gpu_sources_agree', 'GPU_SOURCES_DISAGREE', { inventory: sourcesWith({ pci_gpus: 0 }) }],
  ['driver_min', 'DRIVER_TOO_OLD', { checks: driverFrom('2020-01-01T00:00:00Z') }],
  ['power_limit', 'GPU_POWER_CAPPED', { device: { power_limit_w: 300 } }],
  ['power_limit', 'GPU_POWER_CAPPED', { device: { power_enforced_limit_w: 300 } }],
  [
    'power_limit',
    'GPU_POWER_CAPPED',
    { device: { power_default_limit_w: null, power_enforced_limit_w: 300 } },
  ],
  [
    'power_limit',
    'GPU_POWER_CAPPED',
    {
      device: {
        power_default_limit_w: null,
        power_max_limit_w: null,
        power_enforced_limit_w: 300,
        power_limit_w: 700,
      },
    },
  ],
  [
    'spec_stable',
    'SPEC_CHANGED',
    {
      measured: {
        accepted: { spec: 'NVIDIA L4:1', gpu_uuids: [] },
        streaks: { spec_stable: 1 },
      },
    },
  ],
  [
    'gpu_uuid_stable',
    'GPU_SET_CHANGED',
    {
      measured: {
        accepted: { ...LISTED, gpu_uuids: ['GPU-1'] },
        streaks: { gpu_uuid_stable: 1 },
      },
    },
  ],
  [
    'gpu_uuid_unique',
    'GPU_DUPLICATE',
    { measured: { taken: [{ uuid: CARD, executor_id: 'another' }] } },
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
])('%s fails with %s', (id, reason, change) => {
  const result = resultOf(id, factsOf(change));
  expect([result.passed, result.reason_code]).toEqual([false, reason]);
  expect(result.remediation).toMatch(/\w+ \w+/);
});

type Device = Inventory['gpu']['devices'][number];
/** MIG instances of one card with equal shares. */
function split(card: string, profile: string, parts: number, mib: number): Partial<Device>[] {
  return Array.from({ length: parts }, (_, at) => ({
    uuid: `MIG-51a2b3c4-0010-4aaa-8bbb-00000000000${at}`,
    name: `${card} MIG ${profile}`,
    memory_total_mib: mib,
    mig: { profile, parent_uuid: 'GPU-1' },
  }));
}
function partsOf(changes: Partial<Device>[], driver: 'nvidia' | 'simulated' = 'nvidia') {
  const { inventory } = factsOf();
  const [device] = inventory?.gpu.devices ?? [];
  if (inventory === null || device === undefined) throw new Error('no card');
  const devices = changes.map((change) => ({ ...device, ...change }));
  const gpu = { ...inventory.gpu, driver, devices };
  const { message, measured, reason_code } = resultOf('gpu_parts', factsOf({ inventory: { gpu } }));
  return reason_code === null ? message : `${reason_code} ${measured}`;
}
const H100 = 'NVIDIA H100 80GB HBM3';

it.each<[string, Partial<Device>[]]>([
  ['whole cards', [{ uuid: 'GPU-1' }, { uuid: 'GPU-2' }]],
  ['seven small instances', split(H100, '1g.10gb', 7, 9_984)],
  ['four instances with twice the memory', split(H100, '1g.20gb', 4, 20_480)],
  ['two instances of half a card', split('NVIDIA B200', '3g.90gb', 2, 92_160)],
  ['one instance with all slices', split('NVIDIA A30', '4g.24gb', 1, 24_125)],
  ['compute instances with shared memory', split(H100, '1c.3g.40gb', 3, 40_448)],
  ['instances with media engines', split('NVIDIA H100 NVL', '1g.12gb+me', 1, 12_032)],
  ['instances of an unknown model', split('NVIDIA X900', '1g.99gb', 7, 101_376)],
  ['UUIDs of old drivers', [{ ...split(H100, '1g.10gb', 1, 1)[0], uuid: 'MIG-GPU-12ab-cd/7/0' }]],
])('accepts %s', (_, devices) => {
  expect(partsOf(devices)).toBe('passed');
});

it.each<[string, Partial<Device>[], RegExp]>([
  ['more slices than a card has', split(H100, '7g.80gb', 2, 40_000), /GPU-1: 14 of 7 slices/],
  ['too much memory', split(H100, '1g.40gb', 3, 40_448), /121344 MiB in parts of .* 84006/],
  [
    'instances of two models in one card',
    [...split(H100, '1g.10gb', 1, 9_984), ...split('NVIDIA H200', '1g.18gb', 1, 9_984)],
    /parts of a NVIDIA H100 80GB HBM3 and of a NVIDIA H200/,
  ],
  [
    'instances of a model without MIG',
    split('NVIDIA GeForce RTX 4090', '7g.24gb', 1, 24_000),
    /no driver splits this model/,
  ],
  [
    'an instance with the name of its card',
    [{ ...split(H100, '1g.10gb', 1, 9_984)[0], name: H100 }],
    /part 1g.10gb under another name/,
  ],
  [
    'an instance without a card',
    [{ ...split(H100, '1g.10gb', 1, 9_984)[0], mig: { profile: '1g.10gb', parent_uuid: 'MIG-1' } }],
    /part of no card/,
  ],
  [
    'an instance with the UUID of a card',
    [{ ...split(H100, '1g.10gb', 1, 9_984)[0], uuid: 'GPU-2' }],
    /no UUID of a part/,
  ],
  ['a card with the UUID of an instance', [{ uuid: 'MIG-1' }], /no UUID of a whole card/],
  ['a card with the name of an instance', [{ name: `${H100} MIG 1g.10gb` }], /the name of a part/],
])('rejects %s', (_, devices, measured) => {
  expect(partsOf(devices)).toMatch(/^GPU_PARTS_FALSE /);
  expect(partsOf(devices)).toMatch(measured);
  expect(partsOf(devices, 'simulated')).toBe('unknown');
});

it('warns of an old driver before the policy’s date', () => {
  const soon = factsOf({ checks: driverFrom('2100-01-01T00:00:00Z') });
  expect(resultOf('driver_min', soon)).toMatchObject({ passed: true, severity: 'warning' });
});

it('bans the providers and cards that the policy lists', () => {
  const { miner_hotkey: hotkey } = factsOf().executor;
  const banned_hotkeys = [Hotkey.parse(hotkey)];
  expect(resultOf('banned', factsOf({ checks: { banned_hotkeys } })).reason_code).toBe(
    'PROVIDER_BANNED',
  );
  expect(resultOf('banned', factsOf({ checks: { banned_gpus: [CARD] } })).reason_code).toBe(
    'GPU_BANNED',
  );
  expect(resultOf('banned', factsOf({ banned: true })).reason_code).toBe('PROVIDER_BANNED');
  expect(POLICY.banned_gpus).toEqual([]);
});

it('judges the load that was measured before the trials', () => {
  const { inventory } = factsOf();
  if (inventory === null) throw new Error('no inventory');
  const idle = loadOf(inventory);
  const streaks = { gpu_idle_use: 1, gpu_wedge: 1, host_side_load: 2 };
  const busy = { processes: 1, utilization_percent: 99 };
  const cpu = { model: 'x', cores: 64, utilization_percent: 90 };
  const atWork = (load: typeof idle | null) =>
    factsOf({ device: busy, inventory: { cpu }, measured: { load, streaks } });
  const reasons = (load: typeof idle | null) =>
    ['gpu_idle_use', 'host_side_load'].map((id) => resultOf(id, atWork(load)).reason_code);
  expect(reasons(null)).toEqual(['GPU_BUSY_OUTSIDE_POD', 'HOST_SIDE_LOAD']);
  expect(reasons(idle)).toEqual([null, null]);
  const before = { cpu_percent: 90, cards: [{ ...busy, uuid: CARD, memory_used_mib: 1 }] };
  const measured = { load: before, streaks };
  expect(resultOf('gpu_idle_use', factsOf({ measured })).reason_code).toBe('GPU_BUSY_OUTSIDE_POD');
});
