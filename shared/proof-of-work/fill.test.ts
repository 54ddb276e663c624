import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { blocksOf, type FillLayout, sourcesOf } from './fill.ts';
import { seedOf } from './seed.ts';

const SEED = seedOf({
  nonce: 'AAAAAAAAAAAAAAAAAAAAAA',
  executorId: '3f9f41a6-0001-4000-8000-000000000001',
  device: 'memory',
  purpose: 'memory',
});
const SLICES = 16;

it.each<FillLayout>([
  { lanes: 1, laneBlocks: 64 },
  { lanes: 1, laneBlocks: 4_096 },
  { lanes: 5, laneBlocks: 640 },
])('a block refers to earlier blocks, of other lanes only in earlier slices: %j', (layout) => {
  const { lanes, laneBlocks } = layout;
  const slice = laneBlocks / SLICES;
  const reached = new Set<number>();
  for (let block = 0; block < blocksOf(layout); block += 1) {
    const at = block % laneBlocks;
    const lane = Math.floor(block / laneBlocks);
    const { previous, parent } = sourcesOf(SEED, layout, block);
    expect(previous).toBe(at === 0 ? null : block - 1);
    expect(parent === null).toBe(at < 2);
    if (parent === null) continue;
    const from = parent % laneBlocks;
    expect(from).toBeLessThan(at - 1);
    reached.add(Math.floor(parent / laneBlocks));
    if (Math.floor(parent / laneBlocks) === lane) continue;
    expect(Math.floor(from / slice)).toBeLessThan(Math.floor(at / slice));
  }
  expect(reached.size).toBe(lanes);
});

it('half of the references of a long lane are short, and some reach far back', () => {
  const layout = { lanes: 1, laneBlocks: 2 ** 20 };
  const first = layout.laneBlocks - 2_000;
  const distances = Array.from({ length: 2_000 }, (_, at) => {
    const block = first + at;
    return block - (sourcesOf(SEED, layout, block).parent ?? 0);
  }).sort((one, other) => one - other);
  expect(distances[1_000]).toBeLessThan(2_000);
  expect(distances.at(-1)).toBeGreaterThan(layout.laneBlocks / 3);
});

it('the references depend on the seed', () => {
  const layout = { lanes: 3, laneBlocks: 640 };
  const graphOf = (seed: Uint8Array) => {
    const blocks = Array.from({ length: blocksOf(layout) }, (_, block) => block);
    const graph = blocks.map((block) => sourcesOf(seed, layout, block).parent);
    return createHash('sha256').update(JSON.stringify(graph)).digest('hex');
  };
  expect(graphOf(SEED)).not.toBe(graphOf(Buffer.alloc(32, 1)));
});
