import { expect, it } from 'vitest';
import {
  formatBytes,
  formatCount,
  formatDistance,
  formatDuration,
  formatUsd,
  formatUsdExact,
  wordsOf,
} from './format.ts';

it.each([
  [0, '$0.00'],
  [0.0123, '$0.0123'],
  [0.125, '$0.1250'],
  [0.00001, '$0.00'],
  [1234.5, '$1,234.50'],
  [-2, '-$2.00'],
])('formats %d USD', (usd, text) => expect(formatUsd(usd)).toBe(text));

it.each([
  [0, '$0.00'],
  [2.5, '$2.50'],
  [0.0123, '$0.0123'],
  [0.001234, '$0.001234'],
  [-0.000001, '-$0.000001'],
  // The sum of parts in binary numbers.
  [0.1 + 0.2, '$0.30'],
])('formats %d USD with all digits', (usd, text) => expect(formatUsdExact(usd)).toBe(text));

it.each([
  [0, '0 B'],
  [1_536, '1.5 KiB'],
  [20 * 1024 ** 3, '20 GiB'],
  [2 ** 70, '1048576 PiB'],
])('formats %d bytes', (bytes, text) => expect(formatBytes(bytes)).toBe(text));

it.each([
  [999, '0 s'],
  [61_000, '1 min 1 s'],
  [3_600_000, '1 h'],
  [183_600_000, '2 d 3 h'],
])('formats %d ms', (ms, text) => expect(formatDuration(ms)).toBe(text));

it('formats a time in relation to now', () => {
  expect(formatDistance(1_000, 301_000)).toBe('5 min ago');
  expect(formatDistance(7_201_000, 1_000)).toBe('in 2 h');
  expect(formatDistance(1_000, 1_500)).toBe('now');
});

it('converts names to words', () => {
  expect(wordsOf('REBOOT_PENDING')).toBe('Reboot pending');
  expect(wordsOf('pod-create.success')).toBe('Pod create success');
});

it('counts with the plural', () => {
  expect(formatCount(1, 'file')).toBe('1 file');
  expect(formatCount(1_200, 'file')).toBe('1,200 files');
});
