import { expect, it } from 'vitest';
import type { SampleSeries } from '#shared/api/agent/metric-history.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { fullLoad } from '../../../../test/fixtures/metric-load.ts';
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

/** Creates a series whose figures are all `figureAt`. */
function series(
  gpus: string[],
  ticks: readonly number[],
  figureAt: (tick: number) => number | null,
): SampleSeries {
  const rows = ticks.map((tick) => ({
    tick,
    values: Array.from({ length: 7 + 6 * gpus.length }, () => figureAt(tick)),
  }));
  return { pod_id: null, gpus, rows };
}

const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);

it('restores the stored series, including gaps', async () => {
  const ticks = [...from(0, 100), ...from(400, 300)];
  const samples = series(['GPU-a', 'GPU-b'], ticks, (tick) => (tick % 7 === 0 ? null : tick % 100));
  const recent = withSamples(NOTHING_RECENT, { series: samples, toAt });
  expect(await decodeRecent(await encodeRecent(recent))).toEqual(recent);
  const { archive } = archived(recent, NOTHING_ARCHIVED);
  expect(archive.tens.at.map((at) => at - FIRST_AT / 60)).toEqual([0, 1, 6, 7, 8, 9, 10]);
  expect(await decodeArchive(await encodeArchive(archive))).toEqual(archive);
});

it('limits the size of random figures of the maximum number of GPUs by dropping figures of single GPUs, and then the oldest rows', async () => {
  const gpus = Array.from({ length: 64 }, (_, index) => `GPU-${index}`);
  const any = () => random.int(1_000_000) ** 2;
  let recent: Recent = NOTHING_RECENT;
  for (let first = 0; first < 10 * HOUR; first += HOUR) {
    recent = withSamples(recent, { series: series(gpus, from(first, HOUR), any), toAt });
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
  const gpus = from(0, 16).map((index) => `GPU-0000${index}-0000-4000-8000-000000000000`);
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
    await add(from(0, HOUR).map((index) => first + index * 12));
    ({ recent, archive } = archived(recent, archive));
    archive = await decodeArchive(await encodeArchive(archive));
  }
  for (let first = lastDay; first < 30 * 24 * HOUR; first += HOUR) {
    await add(from(first, HOUR));
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

it('rejects bytes that the codec did not write', async () => {
  const bytes = await encodeRecent(NOTHING_RECENT);
  await expect(decodeArchive(bytes.subarray(0, 5))).rejects.toThrow();
  await expect(decodeRecent(await encodeArchive(NOTHING_ARCHIVED))).rejects.toThrow('damaged');
  expect(await decodeRecent(bytes)).toEqual(NOTHING_RECENT);
});

it('keeps the figures of each GPU separate when GPUs are replaced, and prefers present GPUs above the limit', () => {
  let recent: Recent = NOTHING_RECENT;
  for (let round = 0; round < 5; round += 1) {
    const gpus = from(0, 4).map((index) => `GPU-${round}-${index}`);
    const added = series(gpus, from(round * 60, 60), () => 10 + round);
    recent = withSamples(recent, { series: added, toAt });
    expect(recent.gpus).toEqual(expect.arrayContaining(gpus));
  }
  expect(recent.gpus).toHaveLength(16);
  const { archive, recent: open } = archived(recent, NOTHING_ARCHIVED);
  const all = allTens(open, archive);
  const place = all.gpus.indexOf('GPU-4-0');
  const column = (index: number) => all.tens.cells[index] ?? [];
  expect(column(gpuColumn(place, 'gpu_percent'))).toEqual([0, 0, 0, 0, 15]);
  // The summary counts every reported GPU.
  expect(column(summaryColumn('gpu_percent', 'avg'))).toEqual([11, 12, 13, 14, 15]);
});

it('stores each figure within its documented precision', () => {
  const columns = columnsFor(1);
  const error = (name: Parameters<typeof summaryColumn>[0], value: number) => {
    const scale = columns[summaryColumn(name, 'avg')]?.scale;
    const code = scale?.encode(value) ?? 0;
    expect(code).toBeGreaterThan(0);
    return Math.abs((scale?.decode(code) ?? 0) - value);
  };
  for (const value of [0, 33.4, 99.6, 100]) expect(error('cpu_percent', value)).toBeLessThan(0.51);
  for (const value of [-5, 31.5, 92]) expect(error('temperature_c', value)).toBeLessThan(0.51);
  for (const value of [70, 350, 699, 1_400])
    expect(error('power_w', value)).toBeLessThan(value / 50);
  for (const value of [0, 1_000, 123_456_789, 4e11]) {
    expect(error('rx_bytes_per_second', value)).toBeLessThanOrEqual(value * 0.0225);
    expect(error('disk_used_kib', value)).toBeLessThanOrEqual(value * 0.006);
  }
  expect(error('power_w', -1)).toBe(1);
});
