import { describe, expect, it } from 'vitest';
import { regionsOf, samplesOf } from './market-sample.ts';
import { gini, quantile, rankCorrelation } from './statistics.ts';

describe('statistics', () => {
  it('takes quantiles by the nearest rank', () => {
    const values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    expect([0, 0.5, 0.95, 1].map((share) => quantile(values, share))).toEqual([1, 5, 10, 10]);
    expect(quantile([], 0.5)).toBeNull();
  });

  it('measures inequality from 0 to nearly 1', () => {
    expect(gini([5, 5, 5, 5])).toBeCloseTo(0);
    expect(gini([0, 0, 0, 20])).toBeCloseTo(0.75);
    expect(gini([0, 0])).toBe(0);
  });

  it('correlates ranks, with equal values in the middle of theirs', () => {
    expect(
      rankCorrelation([
        [1, 10],
        [2, 20],
        [3, 900],
      ]),
    ).toBeCloseTo(1);
    expect(
      rankCorrelation([
        [1, 3],
        [2, 2],
        [3, 1],
      ]),
    ).toBeCloseTo(-1);
    expect(
      rankCorrelation([
        [1, 1],
        [1, 2],
        [2, 2],
        [2, 1],
      ]),
    ).toBeCloseTo(0);
    expect(
      rankCorrelation([
        [1, 1],
        [1, 2],
        [1, 3],
      ]),
    ).toBeNull();
  });
});

describe('samples of the market', () => {
  const node = { gpu_type: 'H100', gpu_count: 4, state: 'verified' };
  it('weighs prices by GPUs, and counts free GPUs of partly rented hosts', () => {
    const [sample] = samplesOf(
      [
        { ...node, price_uusd_per_gpu_hour: 1_000_000, rented: 0 },
        { ...node, price_uusd_per_gpu_hour: 2_000_000, rented: 1 },
        { ...node, state: 'failed', price_uusd_per_gpu_hour: 9_000_000, rented: 0 },
      ],
      6,
    );
    expect(sample).toEqual({
      at_hours: 6,
      gpu: 'H100',
      hosts: 3,
      gpus: 12,
      verified_gpus: 8,
      rented_gpus: 1,
      free_gpus: 7,
      stranded_gpus: 3,
      offered_usd: 1.5,
      rented_usd: 2,
    });
  });

  it('adds the hosts of a region, whatever their model', () => {
    const offer = { ...node, price_uusd_per_gpu_hour: 1_000_000 };
    const samples = regionsOf(
      [
        { ...offer, rented: 4, region: 'us' },
        { ...offer, rented: 2, region: 'eu' },
        { ...offer, gpu_type: 'A100', gpu_count: 2, rented: 0, region: 'eu', state: 'failed' },
      ],
      6,
    );
    const counts = { at_hours: 6, verified_gpus: 4 };
    expect(samples).toEqual([
      { ...counts, region: 'eu', hosts: 2, gpus: 6, rented_gpus: 2, free_gpus: 2 },
      { ...counts, region: 'us', hosts: 1, gpus: 4, rented_gpus: 4, free_gpus: 0 },
    ]);
  });
});
