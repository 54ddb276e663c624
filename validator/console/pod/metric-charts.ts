/** Converts the history of a pod to charts. Pure. */
import type { GpuHistory, PodMetricHistory } from '../api/api.gen.ts';

type Values = readonly (number | null)[];

export type ChartData = {
  title: string;
  unit: string;
  series: readonly { label: string; values: Values }[];
  range?: readonly [min: number, max: number];
};

/** Position of a GPU, or all GPUs together. */
export type GpuChoice = number | 'all';

const PERCENT: Pick<ChartData, 'unit' | 'range'> = { unit: '%', range: [0, 100] };

const GPU_CHARTS = [
  { name: 'gpu_utilization', title: 'GPU use', ...PERCENT },
  { name: 'memory_utilization', title: 'GPU memory', ...PERCENT },
  { name: 'temperature_c', title: 'GPU temperature', unit: '°C' },
  { name: 'power_draw_w', title: 'GPU power', unit: 'W' },
] as const;

/** Charts of the GPUs: mean, least and greatest value of all, or the mean of one. */
export function gpuCharts(history: PodMetricHistory, choice: GpuChoice): ChartData[] {
  const gpu = history.gpus.find(({ index }) => index === choice);
  return GPU_CHARTS.map(({ name, ...chart }) => ({
    ...chart,
    series: gpu === undefined ? summarySeries(history[name]) : ofGpu(gpu, gpu[name]),
  }));
}

function ofGpu({ index }: GpuHistory, values: Values): ChartData['series'] {
  return [{ label: `GPU ${index}`, values }];
}

type Figures = Record<'min' | 'avg' | 'max', Values>;

function summarySeries({ min, avg, max }: Figures): ChartData['series'] {
  return [
    { label: 'Mean', values: avg },
    { label: 'Lowest', values: min },
    { label: 'Highest', values: max },
  ];
}

/** Charts of processors, memory, network and disk. */
export function machineCharts(history: PodMetricHistory): ChartData[] {
  return [
    { title: 'Processor use', ...PERCENT, series: summarySeries(history.cpu_utilization) },
    { title: 'Memory', ...PERCENT, series: summarySeries(history.ram_utilization) },
    inBytes('Network', '/s', [
      { label: 'Received', values: history.rx_bytes_per_second.avg },
      { label: 'Sent', values: history.tx_bytes_per_second.avg },
    ]),
    inBytes('Disk traffic', '/s', [
      { label: 'Read', values: history.disk_read_bytes_per_second.avg },
      { label: 'Written', values: history.disk_write_bytes_per_second.avg },
    ]),
    inBytes('Disk in use', '', [{ label: 'Used', values: history.disk_used_bytes.avg }]),
  ];
}

/** Greatest share of the samples with clocks reduced by heat or by a power limit; null without a measurement. */
export function throttled(history: PodMetricHistory): { heat: number; power: number } | null {
  const greatest = ({ max }: Figures) => largest(max);
  const heat = greatest(history.thermal_throttle);
  const power = greatest(history.power_throttle);
  return heat === null && power === null ? null : { heat: heat ?? 0, power: power ?? 0 };
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
const STEP = 1024;

/** Divides the values by the unit that suits the greatest of them. */
function inBytes(title: string, suffix: string, series: ChartData['series']): ChartData {
  const most = Math.max(...series.map(({ values }) => largest(values) ?? 0));
  const exponent = most < STEP ? 0 : Math.floor(Math.log(most) / Math.log(STEP));
  const power = Math.min(exponent, UNITS.length - 1);
  const divisor = STEP ** power;
  return {
    title,
    unit: `${UNITS[power]}${suffix}`,
    series: series.map(({ label, values }) => ({
      label,
      values: values.map((value) => (value === null ? null : value / divisor)),
    })),
  };
}

function largest(values: Values): number | null {
  return values.reduce<number | null>(
    (most, value) => (value === null ? most : Math.max(most ?? value, value)),
    null,
  );
}

export type Gap = { from: number; to: number };

/**
 * Returns the periods without samples between the first and the last sample, in the unit of `times`. Time before the
 * first sample is not a gap: the pod did not run yet.
 */
export function gapsIn(times: readonly number[], samples: readonly number[]): Gap[] {
  const first = samples.findIndex((count) => count > 0);
  const last = samples.findLastIndex((count) => count > 0);
  const gaps: Gap[] = [];
  let from: number | null = null;
  for (let at = first; at >= 0 && at <= last; at += 1) {
    const time = times[at] ?? 0;
    if (samples[at] === 0) from ??= time;
    else if (from !== null) {
      gaps.push({ from, to: time });
      from = null;
    }
  }
  return gaps;
}

/** True if the history has a sample. */
export function isMeasured({ samples }: Pick<PodMetricHistory, 'samples'>): boolean {
  return samples.some((count) => count > 0);
}
