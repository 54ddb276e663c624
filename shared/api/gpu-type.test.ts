import { expect, it } from 'vitest';
import { matchesGpuType, shortGpuType } from './gpu-type.ts';

it.each([
  ['NVIDIA H100 80GB HBM3', 'H100'],
  ['NVIDIA A100-SXM4-80GB', 'A100'],
  ['NVIDIA L40S', 'L40S'],
  ['NVIDIA GeForce RTX 4090', 'RTX 4090'],
  ['NVIDIA RTX 6000 Ada Generation', 'RTX 6000'],
  ['NVIDIA RTX A6000', 'A6000'],
  ['NVIDIA B200', 'B200'],
  ['Tesla T4', 'Tesla T4'],
  ['NVIDIA H100 80GB HBM3 MIG 3g.40gb', 'H100 MIG 3g.40gb'],
])('shortens %s to %s', (name, type) => {
  expect(shortGpuType(name)).toBe(type);
  expect(matchesGpuType(name, type.toLowerCase())).toBe(true);
  expect(matchesGpuType(name, name)).toBe(true);
  expect(matchesGpuType(name, 'GTX 1080')).toBe(false);
});

it('does not match a MIG device with the type of its card', () => {
  expect(matchesGpuType('NVIDIA H100 80GB HBM3 MIG 3g.40gb', 'H100')).toBe(false);
});
