import { expect, it } from 'vitest';
import {
  explanationIn,
  nameOfConstraint,
  relaxedValue,
  textOfValue,
  totalOf,
} from './constraints.ts';

it('names constraints and values for people', () => {
  expect(nameOfConstraint('max_price_per_gpu_hour')).toBe('Price per GPU, at most');
  expect(nameOfConstraint('a_new_one')).toBe('A new one');
  expect(textOfValue('price_lte', 2)).toBe('$2.00');
  expect(textOfValue('nvlink', true)).toBe('yes');
  expect(textOfValue('gpu_count', 4)).toBe('4');
  expect(textOfValue('min_vram_gb', 24)).toBe('24 GB');
});

it('relaxes a constraint to the offered value, and removes it if the node does not report one', () => {
  expect(relaxedValue({ offered: 2.5 })).toBe(2.5);
  expect(relaxedValue({ offered: 'unknown' })).toBe('');
});

it('reads the explanation of a refusal, and ignores malformed entries', () => {
  const step = { constraint: 'gpu_type', remaining: 0 };
  const near = { constraint: 'gpu_type', requested: 'H200', offered: 'H100', executor_id: 'x' };
  expect(explanationIn({ funnel: [step, 1], nearest: [near, null] })).toEqual({
    funnel: [step],
    nearest: [near],
  });
  expect(explanationIn({ funnel: 'x' })).toBe(null);
  expect(explanationIn(undefined)).toBe(null);
});

it('counts the nodes that meet all constraints', () => {
  expect(
    totalOf([
      { constraint: 'offered', remaining: 9 },
      { constraint: 'price_lte', remaining: 2 },
    ]),
  ).toBe(2);
  expect(totalOf([])).toBe(0);
});
