import { describe, expect, it } from 'vitest';
import { marketOf, positionOf, priceProblem, priceRange } from './price-advice.ts';

const config = {
  machine_prices: {
    'NVIDIA H100 80GB HBM3': 2.2,
    'NVIDIA H100 NVL': 2,
    'NVIDIA A100-SXM4-80GB': 1.2,
  },
  machine_min_price_rate: 0.5,
  machine_max_price_rate: 4,
  platform_fee_rate: 0.1,
};

describe('priceRange', () => {
  it('accepts full and short names', () => {
    expect(priceRange(config, 'NVIDIA H100 NVL')).toEqual({ reference: 2, min: 1, max: 8 });
    expect(priceRange(config, 'H100')?.reference).toBe(2.2);
    expect(priceRange(config, 'A100')?.reference).toBe(1.2);
    expect(priceRange(config, 'H1')).toBeNull();
  });

  it('names the range of a price outside it', () => {
    const range = priceRange(config, 'H100');
    expect(priceProblem(9, range)).toContain('$1.1 to $8.8');
    expect(priceProblem(1.1, range)).toBeNull();
    expect(priceProblem(null, range)).toBeNull();
  });
});

it.each([
  [1, /below all/],
  [2, /lowest and the average/],
  [3, /average and the highest/],
  [5, /above all/],
])('positions %d USD in the market', (price, sentence) => {
  const market = { min_price_per_gpu: 2, avg_price_per_gpu: 2.5, max_price_per_gpu: 4 };
  expect(positionOf(price, market)).toMatch(sentence);
});

it('finds the market of a short and of a full name', () => {
  const row = {
    machine_name: 'NVIDIA H100 80GB HBM3',
    gpu_type: 'H100',
    total_executor_count: 1,
    rented_executor_count: 0,
    available_executor_count: 1,
    total_gpu_count: 8,
    rented_gpu_count: 0,
    available_gpu_count: 8,
    min_price_per_gpu: 2,
    avg_price_per_gpu: 2,
    max_price_per_gpu: 2,
    rental_rate: 0,
  };
  expect(marketOf([row], 'H100')).toBe(row);
  expect(marketOf([row], 'NVIDIA H100 80GB HBM3')).toBe(row);
  expect(marketOf([row], 'A100')).toBeNull();
});
