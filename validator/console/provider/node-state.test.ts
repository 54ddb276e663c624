import { expect, it } from 'vitest';
import { type Check, checkEffect, checkTone, occupancyOf, sortChecks } from './node-state.ts';

const check = (name: string, passed: boolean, gating: boolean): Check => ({
  name,
  passed,
  gating,
  measured: '',
  required: '',
  message: '',
  fix: '',
  fix_command: null,
  verify_command: null,
});

it('sorts failures that prevent rentals first, and passed checks last', () => {
  const checks = [
    check('a', true, true),
    check('d', false, false),
    check('c', false, true),
    check('b', false, true),
  ];
  expect(sortChecks(checks).map(({ name }) => name)).toEqual(['b', 'c', 'd', 'a']);
});

it('distinguishes failures with and without effect', () => {
  expect(checkTone(check('a', false, true))).toBe('bad');
  expect(checkTone(check('a', false, false))).toBe('warn');
  expect(checkEffect(check('a', false, true), true)).toMatch(/^No new rentals/);
  expect(checkEffect(check('a', false, true), false)).toMatch(/weight.*Rentals continue/);
  expect(checkEffect(check('a', false, false), false)).toMatch(/^None/);
});

it('counts no GPU of an unchecked node as rented', () => {
  expect(occupancyOf({ gpu_count: 8, available_gpu_count: 0, rented: false })).toBe(
    '0 of 8 rented',
  );
  expect(occupancyOf({ gpu_count: 8, available_gpu_count: 5, rented: true })).toBe('3 of 8 rented');
});
