import { expect, it } from 'vitest';
import { factsOf, POLICY, resultOf, verdictWhen } from '../../test/fixtures/check-facts.ts';
import { inventoryOf } from '../../test/fixtures/inventory.ts';
import { FULL_GPU_PROOF } from '../inspection/proof/gpu-proof.ts';
import { cardsMsOf, EXPECTED_SHARE, expectedMsOf, PROOF_OPERATIONS } from './card-times.ts';
import type { GpuProofFacts } from './measured.ts';

const PEAK = { int8_tops: 1_000, source: 'a test' };

it('derives a time from the published peak until the model was measured', () => {
  const { n, rounds } = FULL_GPU_PROOF;
  expect(PROOF_OPERATIONS).toBe(rounds * 2 * n ** 3);
  const productMs = (PROOF_OPERATIONS / (1e15 * EXPECTED_SHARE)) * 1_000;
  expect(expectedMsOf(PEAK)).toBe(3_000 + productMs);
  expect(expectedMsOf({ ...PEAK, measured_ms: 2_200 })).toBe(3_200);
});

it('has a peak with its source for every model of the default policy', () => {
  expect(Object.keys(POLICY.card_times ?? {})).toEqual(Object.keys(POLICY.models));
});

it('expects the time of the slowest card', () => {
  const inventory = inventoryOf({ gpuCount: 2, gpuName: 'slow' });
  const [first, second] = inventory.gpu.devices;
  if (first === undefined || second === undefined) throw new Error('no cards');
  const devices = [first, { ...second, name: 'fast' }];
  const mixed = { ...inventory, gpu: { ...inventory.gpu, devices } };
  const times = { slow: { ...PEAK, measured_ms: 9_000 }, fast: { ...PEAK, measured_ms: 1_000 } };
  expect(cardsMsOf(mixed, times)).toBe(10_000);
  expect(cardsMsOf(mixed, { slow: times.slow })).toBeNull();
  expect(cardsMsOf(mixed, null)).toBeUndefined();
});

it('names a card that is slower than its model, and fails no host for it', () => {
  const gpu_proof: GpuProofFacts = {
    device: 'gpu',
    status: 'proven',
    reason: null,
    detail: '',
    ms: 60_000,
    wall_ms: 60_000,
    expected_ms: null,
    others: 0,
    cards: [],
    repeated: false,
  };
  const measured = { gpu_proof, streaks: { pow_gpu: 9 } };
  expect(resultOf('pow_gpu', factsOf({ measured }))).toMatchObject({
    passed: false,
    reason_code: 'POW_TOO_SLOW',
    mode: 'shadow',
  });
  expect(verdictWhen({ measured })).toBe('verified');
  const unlisted = resultOf('pow_gpu', factsOf({ measured, checks: { card_times: {} } }));
  expect([unlisted.passed, unlisted.measured]).toEqual([
    true,
    'proven, but the policy has no time for a card of this model',
  ]);
});
