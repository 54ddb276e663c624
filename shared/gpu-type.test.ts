import { expect, it } from 'vitest';
import { gpuTypesMatch, shortGpuType } from './gpu-type.ts';

it.each([
  ['NVIDIA H100 80GB HBM3', 'H100'],
  ['NVIDIA GeForce RTX 4090', 'RTX4090'],
  ['NVIDIA L40S', 'L40S'],
  ['NVIDIA A100-SXM4-80GB', 'A100'],
  ['NVIDIA RTX A6000', 'A6000'],
  ['NVIDIA B200', 'B200'],
  ['Tesla T4', 'T4'],
  ['NVIDIA GeForce GTX 1070 Ti', 'GTX 1070'],
])('shortens %s to %s', (name, short) => {
  expect(shortGpuType(name)).toBe(short);
  expect(gpuTypesMatch(short, name)).toBe(true);
});

it('tells models apart', () => {
  expect(gpuTypesMatch('H100', 'NVIDIA H200')).toBe(false);
  expect(gpuTypesMatch('RTX 4090', 'NVIDIA GeForce RTX 4080 SUPER')).toBe(false);
});
