import { describe, expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { chooseGpuCount, type GpuOffer } from './gpu-choice.ts';

function outcome(requested: number | null, offer: GpuOffer): number | string {
  try {
    return chooseGpuCount(requested, offer);
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

const whole = { total: 4, free: 4, minimum: null, canSplit: true, isLaunching: false };
const split = { ...whole, minimum: 2 };

describe('checks of the requested number of GPUs', () => {
  it.each([
    ['an absent count if all GPUs are free', null, whole, 4],
    ['an absent count if some GPUs are rented', null, { ...split, free: 2 }, 'gpu_count_invalid'],
    ['more GPUs than the node has', 5, whole, 'gpu_count_invalid'],
    ['more GPUs than the node has if none is free', 5, { ...whole, free: 0 }, 'gpu_count_invalid'],
    ['all GPUs, none free', 4, { ...whole, free: 0 }, 'node_unavailable'],
    [
      'all GPUs during a launch',
      4,
      { ...whole, free: 0, isLaunching: true },
      'node_rent_in_progress',
    ],
    ['a part of an unsplittable node', 2, { ...split, canSplit: false }, 'gpu_split_not_allowed'],
    ['a part without a minimum', 2, whole, 'gpu_count_invalid'],
    [
      'a part without splitting or minimum',
      2,
      { ...whole, canSplit: false },
      'gpu_split_not_allowed',
    ],
    ['fewer than the minimum', 1, split, 'gpu_count_invalid'],
    ['more GPUs than are free', 3, { ...split, free: 2 }, 'gpu_count_invalid'],
    ['a count that leaves fewer free GPUs than the minimum', 3, split, 3],
    ['exactly the minimum', 2, split, 2],
    ['all GPUs of an unsplittable node', 4, { ...whole, canSplit: false }, 4],
    ['a minimum of one', 1, { ...split, minimum: 1 }, 1],
  ] as const)('%s', (_, requested, offer, expected) => {
    expect(outcome(requested, offer)).toBe(expected);
  });
});

it('states the number of free GPUs in the error', () => {
  expect(() => chooseGpuCount(3, { ...split, free: 2 })).toThrow('2 GPUs of the node are free');
});
