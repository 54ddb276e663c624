import { expect, it } from 'vitest';
import { seriesOf, ticksFrom } from '../../../../test/fixtures/metric-load.ts';
import { columnsFor, gpuColumn, summaryColumn } from './figures.ts';
import { decodeArchive, decodeRecent, encodeArchive, encodeRecent } from './history-codec.ts';
import {
  allTens,
  archived,
  NOTHING_ARCHIVED,
  NOTHING_RECENT,
  type Recent,
  withSamples,
} from './retained.ts';

const FIRST_AT = 180_000_000;
const toAt = (tick: number) => FIRST_AT + tick;

it('restores the stored series, including gaps', async () => {
  const ticks = [...ticksFrom(0, 100), ...ticksFrom(400, 300)];
  const samples = seriesOf(['GPU-a', 'GPU-b'], ticks, (tick) =>
    tick % 7 === 0 ? null : tick % 100,
  );
  const recent = withSamples(NOTHING_RECENT, { series: samples, toAt });
  expect(await decodeRecent(await encodeRecent(recent))).toEqual(recent);
  const { archive } = archived(recent, NOTHING_ARCHIVED);
  expect(archive.tens.at.map((at) => at - FIRST_AT / 60)).toEqual([0, 1, 6, 7, 8, 9, 10]);
  expect(await decodeArchive(await encodeArchive(archive))).toEqual(archive);
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
    const gpus = ticksFrom(0, 4).map((index) => `GPU-${round}-${index}`);
    const added = seriesOf(gpus, ticksFrom(round * 60, 60), () => 10 + round);
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
