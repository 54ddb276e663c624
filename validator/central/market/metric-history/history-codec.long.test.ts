/** Limits of the stored series, and a month of a busy node. */
import { expect, it } from 'vitest';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { fullLoad, seriesOf, ticksFrom } from '../../../../test/fixtures/metric-load.ts';
import { columnsFor, gpuColumn, summaryColumn } from './figures.ts';
import {
  decodeArchive,
  decodeRecent,
  encodeArchive,
  encodeRecent,
  MAX_ARCHIVE_BYTES,
  MAX_RECENT_BYTES,
} from './history-codec.ts';
import {
  type Archive,
  allTens,
  archived,
  NOTHING_ARCHIVED,
  NOTHING_RECENT,
  type Recent,
  TEN_MINUTE_SPAN,
  withSamples,
} from './retained.ts';
import { addRow, emptyTier } from './tier.ts';

const HOUR = 360;
const FIRST_AT = 180_000_000;
const random = createSeededRandom(3);
const toAt = (tick: number) => FIRST_AT + tick;

it('limits the size of random figures of the maximum number of GPUs by dropping figures of single GPUs, and then the oldest rows', async () => {
  const gpus = Array.from({ length: 64 }, (_, index) => `GPU-${index}`);
  const any = () => random.int(1_000_000) ** 2;
  let recent: Recent = NOTHING_RECENT;
  for (let first = 0; first < 10 * HOUR; first += HOUR) {
    recent = withSamples(recent, { series: seriesOf(gpus, ticksFrom(first, HOUR), any), toAt });
  }
  const bytes = await encodeRecent(recent);
  expect(bytes.length).toBeLessThanOrEqual(MAX_RECENT_BYTES);
  const kept = await decodeRecent(bytes);
  expect(kept.tens).toEqual(recent.tens);
  expect(kept.samples.at.at(-1)).toBe(recent.samples.at.at(-1));
  expect(kept.gpus).toHaveLength(16);

  const tens = emptyTier(16);
  for (let at = 0; at < TEN_MINUTE_SPAN; at += 1) {
    addRow(
      tens,
      at,
      columnsFor(16).map(({ scale }) => random.int(scale.codes + 1)),
    );
  }
  const archive: Archive = { gpus: kept.gpus, tens };
  const stored = await encodeArchive(archive);
  expect(stored.length).toBeLessThanOrEqual(MAX_ARCHIVE_BYTES);
  const { at } = (await decodeArchive(stored)).tens;
  expect(at.at(-1)).toBe(TEN_MINUTE_SPAN - 1);
  expect(at.length).toBeGreaterThan(TEN_MINUTE_SPAN / 2);
});

it('retains 30 days and 3 hours of a node with 16 busy GPUs, including the newest figures of each GPU', async () => {
  const gpus = ticksFrom(0, 16).map((index) => `GPU-0000${index}-0000-4000-8000-000000000000`);
  const load = fullLoad(createSeededRandom(1), gpus.length);
  const rowsOf = (ticks: number[]) => ticks.map((tick) => ({ tick, values: load(tick) }));
  let recent: Recent = NOTHING_RECENT;
  let archive: Archive = NOTHING_ARCHIVED;
  const add = async (ticks: number[]) => {
    const samples = { pod_id: null, gpus, rows: rowsOf(ticks) };
    recent = await decodeRecent(await encodeRecent(withSamples(recent, { series: samples, toAt })));
  };
  // Uses one sample every 2 minutes until the last day. Means of fewer samples vary more, and compress worse.
  const lastDay = 29 * 24 * HOUR;
  for (let first = 0; first < lastDay; first += 12 * HOUR) {
    await add(ticksFrom(0, HOUR).map((index) => first + index * 12));
    ({ recent, archive } = archived(recent, archive));
    archive = await decodeArchive(await encodeArchive(archive));
  }
  for (let first = lastDay; first < 30 * 24 * HOUR; first += HOUR) {
    await add(ticksFrom(first, HOUR));
  }
  expect([recent.samples.at.length, recent.minutes.at.length]).toEqual([90, 180]);
  const all = allTens(recent, archive);
  expect(all.tens.at).toHaveLength(TEN_MINUTE_SPAN);
  for (let column = 0; column < summaryColumn('power_throttle_percent', 'max'); column += 1) {
    expect(all.tens.cells[column]).not.toContain(0);
  }
  const perGpu = all.tens.cells[gpuColumn(15, 'power_w')] ?? [];
  const known = perGpu.filter((code) => code !== 0);
  expect(perGpu.slice(-known.length)).toEqual(known);
  expect(known.length).toBeGreaterThan(TEN_MINUTE_SPAN / 2);
});
