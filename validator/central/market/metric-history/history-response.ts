/** Converts stored rows to the response, with an entry for each interval of the range. Pure. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import {
  columnsFor,
  type FigureName,
  type GpuFigureName,
  gpuColumn,
  STATISTICS,
  summaryColumn,
} from './figures.ts';
import type { Range } from './history-range.ts';
import type { GpuHistory, MetricHistory } from './metric-history.schemas.ts';
import type { Tier } from './tier.ts';

const MS_PER_SECOND = 1_000;
const BYTES_PER_KIB = 1_024;
/** Significant digits of a response, more precise than the steps of the stored values. */
const DIGITS = 4;

export type Found = {
  range: Range;
  tier: Tier;
  /** GPUs that have columns. */
  gpus: readonly string[];
  simulated: boolean;
  stale: boolean;
  perGpu: boolean;
};

type Values = (number | null)[];

export function historyResponse(found: Found): MetricHistory {
  const { range, tier, gpus, simulated, stale } = found;
  const { resolution, first, end } = range;
  const count = end - first;
  const rows = new Map(tier.at.map((at, row) => [at - first, row]));
  const columns = columnsFor(gpus.length);

  function values(column: number): Values {
    const scale = columns[column]?.scale;
    const codes = tier.cells[column];
    return Array.from({ length: count }, (_, index) => {
      const row = rows.get(index);
      const code = row === undefined ? 0 : (codes?.[row] ?? 0);
      return code === 0 || scale === undefined ? null : scale.decode(code);
    });
  }

  function summary(name: FigureName | GpuFigureName): Record<'min' | 'avg' | 'max', Values> {
    const [min = [], avg = [], max = []] = STATISTICS.map((each) =>
      values(summaryColumn(name, each)),
    );
    return { min, avg, max };
  }

  function ofGpu(uuid: string, index: number): GpuHistory {
    const figure = (name: GpuFigureName) => values(gpuColumn(index, name));
    return {
      index,
      uuid,
      gpu_utilization: figure('gpu_percent'),
      memory_utilization: figure('gpu_memory_percent'),
      power_draw_w: figure('power_w'),
      temperature_c: figure('temperature_c'),
      thermal_throttle: figure('thermal_throttle_percent'),
      power_throttle: figure('power_throttle_percent'),
    };
  }

  return {
    simulated,
    stale,
    resolution,
    timestamps: Array.from({ length: count }, (_, index) =>
      naiveUtc((first + index) * resolution * MS_PER_SECOND),
    ),
    samples: Array.from({ length: count }, (_, index) => {
      const row = rows.get(index);
      return row === undefined ? 0 : (tier.samples[row] ?? 0);
    }),
    cpu_utilization: summary('cpu_percent'),
    ram_utilization: summary('ram_percent'),
    rx_bytes_per_second: summary('rx_bytes_per_second'),
    tx_bytes_per_second: summary('tx_bytes_per_second'),
    disk_used_bytes: inBytes(summary('disk_used_kib')),
    disk_read_bytes_per_second: summary('disk_read_bytes_per_second'),
    disk_write_bytes_per_second: summary('disk_write_bytes_per_second'),
    gpu_utilization: summary('gpu_percent'),
    memory_utilization: summary('gpu_memory_percent'),
    power_draw_w: summary('power_w'),
    temperature_c: summary('temperature_c'),
    thermal_throttle: summary('thermal_throttle_percent'),
    power_throttle: summary('power_throttle_percent'),
    gpus: found.perGpu ? gpus.map(ofGpu) : [],
  };
}

function inBytes({ min, avg, max }: Record<'min' | 'avg' | 'max', Values>) {
  const each = (values: Values) =>
    values.map((kib) => (kib === null ? null : Number((kib * BYTES_PER_KIB).toPrecision(DIGITS))));
  return { min: each(min), avg: each(avg), max: each(max) };
}
