/** Figures of the history of metrics, and the scales on which they are stored as small integers. Pure. */
import { SAMPLED_FIGURES, SAMPLED_GPU_FIGURES } from '#shared/api/agent/metric-history.ts';

/** Stores a value as a code from 1 to `codes`; code 0 is an unknown value. Higher values have higher codes. */
type Scale = { codes: number; encode(value: number): number; decode(code: number): number };

function scale(codes: number, { to, from }: Record<'to' | 'from', (x: number) => number>): Scale {
  // Means decode many codes, so the values are computed once.
  const values = Float64Array.from({ length: codes + 1 }, (_, code) => from(code - 1));
  return {
    codes,
    encode: (value) => 1 + Math.min(codes - 1, Math.max(0, Math.round(to(value)))),
    decode: (code) => values[Math.min(code, codes)] ?? 0,
  };
}

/** Steps of 1, from 0 to 100. */
const PERCENT = scale(101, { to: (x) => x, from: (code) => code });

const LOWEST_C = -40;
/** Steps of 1 °C up to 215 °C. */
const TEMPERATURE = scale(256, { to: (x) => x - LOWEST_C, from: (code) => code + LOWEST_C });

const ROOT_STEPS = 8;
/** Steps of 2.5 W at 100 W and of 7 W at 700 W, up to 4 kW. */
const POWER = scale(507, {
  to: (x) => Math.sqrt(Math.max(0, x)) * ROOT_STEPS,
  from: (code) => Math.round((code / ROOT_STEPS) ** 2),
});

/** Creates a scale with `steps` codes for each doubling of the value. */
function logarithmic(steps: number) {
  const doublings = 42;
  return scale(doublings * steps, {
    to: (x) => Math.log2(1 + Math.max(0, x)) * steps,
    from: (code) => Number((2 ** (code / steps) - 1).toPrecision(4)),
  });
}

/** Scale with an error of at most 2.2 %. */
const RATE = logarithmic(16);
/** Scale with an error of at most 0.6 %. */
const AMOUNT = logarithmic(64);

/** Scales of the figures, in the order of the figures in a sample. */
const FIGURE_SCALES = {
  cpu_percent: PERCENT,
  ram_percent: PERCENT,
  rx_bytes_per_second: RATE,
  tx_bytes_per_second: RATE,
  disk_used_kib: AMOUNT,
  disk_read_bytes_per_second: RATE,
  disk_write_bytes_per_second: RATE,
} satisfies Record<(typeof SAMPLED_FIGURES)[number], Scale>;

const GPU_SCALES = {
  gpu_percent: PERCENT,
  gpu_memory_percent: PERCENT,
  power_w: POWER,
  temperature_c: TEMPERATURE,
  thermal_throttle_percent: PERCENT,
  power_throttle_percent: PERCENT,
} satisfies Record<(typeof SAMPLED_GPU_FIGURES)[number], Scale>;

export type FigureName = (typeof SAMPLED_FIGURES)[number];
export type GpuFigureName = (typeof SAMPLED_GPU_FIGURES)[number];

export const PER_GPU = SAMPLED_GPU_FIGURES.length;
/** Figures that each row has as minimum, mean and maximum: of the host or pod, and over all of its GPUs. */
const SUMMARIZED: readonly Scale[] = [
  ...SAMPLED_FIGURES.map((name) => FIGURE_SCALES[name]),
  ...SAMPLED_GPU_FIGURES.map((name) => GPU_SCALES[name]),
];

/** Aggregations of a column over the samples of an interval. */
export const STATISTICS = ['min', 'avg', 'max'] as const;
export type Statistic = (typeof STATISTICS)[number];

/** A column of stored codes. */
export type Column = { scale: Scale; statistic: Statistic };

/** Columns before those of single GPUs. */
export const SUMMARY_COLUMNS = SUMMARIZED.length * STATISTICS.length;

const SUMMARY: readonly Column[] = SUMMARIZED.flatMap((each) =>
  STATISTICS.map((statistic) => ({ scale: each, statistic })),
);
/** Columns of a single GPU, which has means only. */
const GPU: readonly Column[] = SAMPLED_GPU_FIGURES.map((name) => ({
  scale: GPU_SCALES[name],
  statistic: 'avg',
}));

/** Returns all columns of a series with `gpus` GPUs. */
export function columnsFor(gpus: number): readonly Column[] {
  return [...SUMMARY, ...Array.from({ length: gpus }, () => GPU).flat()];
}

/** Index of a figure's column; GPU figures are means, minima and maxima over all GPUs. */
export function summaryColumn(name: FigureName | GpuFigureName, statistic: Statistic): number {
  const names: readonly string[] = [...SAMPLED_FIGURES, ...SAMPLED_GPU_FIGURES];
  return names.indexOf(name) * STATISTICS.length + STATISTICS.indexOf(statistic);
}

/** Index of the column of one GPU's figure. */
export function gpuColumn(gpu: number, name: GpuFigureName): number {
  return SUMMARY_COLUMNS + gpu * PER_GPU + SAMPLED_GPU_FIGURES.indexOf(name);
}
