/** What checks make of cards: what they are called, how they are, whose they are. */
import { expect, it } from 'vitest';
import { Hotkey } from '#shared/signing/hotkey.ts';
import {
  type Failing,
  factsOf,
  POLICY,
  resultOf,
  sourcesWith,
} from '../../test/fixtures/check-facts.ts';
import { loadOf } from './load.ts';

const driverFrom = (from: string) => ({ driver_min: { version: '999.1', from } });
const LISTED = { spec: 'NVIDIA H100 80GB HBM3:1' };
const CARD = factsOf().inventory?.gpu.devices[0]?.uuid ?? '';

it.each<Failing>([
  ['gpu_count', 'GPU_COUNT_IMPLAUSIBLE', { checks: { max_gpus: 0 } }],
  ['gpu_model', 'GPU_MODEL_UNKNOWN', { device: { name: 'NVIDIA X1' } }],
  ['gpu_vram', 'GPU_VRAM_MISMATCH', { device: { memory_total_mib: 24_576 } }],
  ['gpu_sources_agree', 'GPU_SOURCES_DISAGREE', { inventory: sourcesWith({ pci_gpus: 0 }) }],
  ['driver_min', 'DRIVER_TOO_OLD', { checks: driverFrom('2020-01-01T00:00:00Z') }],
  ['power_limit', 'GPU_POWER_CAPPED', { device: { power_limit_w: 300 } }],
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

it('warns of a driver whose date is to come', () => {
  const soon = factsOf({ checks: driverFrom('2100-01-01T00:00:00Z') });
  expect(resultOf('driver_min', soon)).toMatchObject({ passed: true, severity: 'warning' });
});

it('bans by the lists of the policy, too', () => {
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

it('does not take the work of a trial for somebody else’s: what was there before it counts', () => {
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
