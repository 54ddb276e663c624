import { describe, expect, it } from 'vitest';
import type { PodMetricHistory } from '../api/api.gen.ts';
import { gapsIn, gpuCharts, machineCharts, throttled } from './metric-charts.ts';
import { METRIC_RANGES, rangeOf, refetchMsOf, startOf } from './metric-ranges.ts';

const figures = (...avg: (number | null)[]) => ({ min: avg, avg, max: avg });
const history = (members: Partial<PodMetricHistory> = {}) =>
  ({
    gpu_utilization: figures(50, null),
    memory_utilization: figures(10, null),
    temperature_c: figures(40, null),
    power_draw_w: figures(300, null),
    cpu_utilization: figures(5, null),
    ram_utilization: figures(6, null),
    rx_bytes_per_second: figures(2_048, null),
    tx_bytes_per_second: figures(1_024, null),
    disk_read_bytes_per_second: figures(0, null),
    disk_write_bytes_per_second: figures(null, null),
    disk_used_bytes: figures(3 * 1024 ** 3, null),
    thermal_throttle: figures(null, null),
    power_throttle: figures(null, null),
    gpus: [{ index: 1, gpu_utilization: [70, null] }],
    ...members,
  }) as PodMetricHistory;

describe('charts', () => {
  it('have mean, lowest and highest of all GPUs, or the mean of one', () => {
    const [all] = gpuCharts(history(), 'all');
    expect(all?.series.map(({ label }) => label)).toEqual(['Mean', 'Lowest', 'Highest']);
    const [one] = gpuCharts(history(), 1);
    expect(one?.series).toEqual([{ label: 'GPU 1', values: [70, null] }]);
    expect(gpuCharts(history(), 7)[0]?.series).toHaveLength(3);
  });

  it('have the unit of the greatest value, and keep gaps', () => {
    const [, , network, traffic, disk] = machineCharts(history());
    expect(network).toMatchObject({ unit: 'KiB/s', series: [{ values: [2, null] }, {}] });
    expect(traffic).toMatchObject({ unit: 'B/s', series: [{ values: [0, null] }, {}] });
    expect(disk).toMatchObject({ unit: 'GiB', series: [{ values: [3, null] }] });
  });

  it('report throttling only if it was measured', () => {
    expect(throttled(history())).toBeNull();
    expect(throttled(history({ thermal_throttle: figures(null, 12) }))).toEqual({
      heat: 12,
      power: 0,
    });
  });
});

it.each([
  [[0, 0], []],
  [[0, 1, 1], []],
  [
    [1, 0, 0, 1, 0, 1],
    [
      { from: 1, to: 3 },
      { from: 4, to: 5 },
    ],
  ],
  [[1, 0, 0], []],
])('samples %j have the gaps %j', (samples, gaps) => {
  expect(gapsIn([0, 1, 2, 3, 4, 5], samples)).toEqual(gaps);
});

describe('ranges', () => {
  it('begin at an interval, so that repeated requests are equal', () => {
    const range = rangeOf('24h');
    expect(startOf(range, 86_400_000 * 2 + 1)).toBe(startOf(range, 86_400_000 * 2 + 599_999));
    expect(startOf(range, 86_400_000 * 2)).toBe(86_400_000 + 600_000);
  });

  it('fall back to the shortest', () => expect(rangeOf('x')).toBe(METRIC_RANGES[0]));
  it('are read again at least every minute', () => {
    expect(METRIC_RANGES.map(refetchMsOf)).toEqual([10_000, 60_000, 60_000, 60_000, 60_000]);
  });
});
