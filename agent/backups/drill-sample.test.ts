import { expect, it } from 'vitest';
import type { ListedNode } from './restic-output.ts';
import { createSampler } from './run-drill.ts';

const node = (path: string, size: number, type = 'file'): ListedNode => ({
  struct_type: 'node',
  type,
  path,
  size,
  mode: 0o644,
  mtime: '2026-01-01T00:00:00Z',
  ctime: '2026-01-01T00:00:00Z',
});
const FILES = Array.from({ length: 1_000 }, (_, index) => node(`/_data/${index}`, index));
const LIMITS = { seed: 'one', max_files: 20, max_bytes: 5_000 };

function chosenOf(files: readonly ListedNode[], change: Partial<typeof LIMITS> = {}): string[] {
  const sampler = createSampler({ ...LIMITS, ...change });
  for (const file of files) sampler.add(file);
  return sampler.chosen().map(({ path }) => path);
}

it('selects a sample within its bounds that includes the largest file that fits', () => {
  const files = [...FILES, node('/_data/huge', 5_001)];
  const sampler = createSampler(LIMITS);
  for (const file of files) sampler.add(file);
  const chosen = sampler.chosen();
  expect(chosen[0]?.path).toBe('/_data/999');
  expect(chosen.length).toBeGreaterThan(5);
  expect(chosen.length).toBeLessThanOrEqual(20);
  expect(chosen.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(5_000);
  expect(sampler.seen()).toBe(1_001);
  expect(chosenOf(files, { max_files: 1 })).toEqual(['/_data/999']);
});

it('selects files by the seed, not by the order in which they are listed', () => {
  const first = chosenOf(FILES);
  expect(chosenOf(FILES.toReversed())).toEqual(first);
  expect(chosenOf(FILES, { seed: 'two' })).not.toEqual(first);
});

it('skips entries that are not files, and names that cannot be requested from restic', () => {
  const odd = [node('/_data', 0, 'dir'), node('/_data/link', 0, 'symlink')];
  expect(chosenOf([...odd, node('/_data/\u{fffd}', 1), node('/_data/ü', 1)])).toEqual(['/_data/ü']);
  expect(chosenOf(odd)).toEqual([]);
});
