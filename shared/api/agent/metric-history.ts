/**
 * Samples that an agent retains for the history of metrics (GET /v1/metrics/history): of the host, and of each pod that
 * ran. Ticks number the intervals of SAMPLE_INTERVAL_MS in a run of the agent; a missing tick was not measured.
 */
import { z } from 'zod';
import { Age, Figure } from './bounds.ts';
import { GpuUuid, PodId } from './pod.ts';

/** Ticks retained by the agent: one hour. */
export const MAX_RETAINED_TICKS = 360;
/** Ticks per response; a reader requests the next ones with `after`. */
export const MAX_PAGE_TICKS = 60;
/** GPUs of a series whose readings are reported. */
export const MAX_SAMPLED_GPUS = 64;
/** Series per response: the host and its pods. */
export const MAX_SERIES = 257;

/** Figures at the beginning of a row, in this order. */
export const SAMPLED_FIGURES = [
  /** Percent of the host's processors, or of the pod's limit. */
  'cpu_percent',
  /** Percent of the host's memory, or of the pod's limit. */
  'ram_percent',
  'rx_bytes_per_second',
  'tx_bytes_per_second',
  /** Used space of the disk that pods fill, or data written by the pod. */
  'disk_used_kib',
  'disk_read_bytes_per_second',
  'disk_write_bytes_per_second',
] as const;

/** Figures of each GPU, after those above, in this order. */
export const SAMPLED_GPU_FIGURES = [
  'gpu_percent',
  'gpu_memory_percent',
  'power_w',
  'temperature_c',
  /** 100 if the clocks are reduced because of heat or a hardware slowdown, otherwise 0. */
  'thermal_throttle_percent',
  /** 100 if the clocks are reduced because of a power limit, otherwise 0. */
  'power_throttle_percent',
] as const;

const MAX_ROW = SAMPLED_FIGURES.length + SAMPLED_GPU_FIGURES.length * MAX_SAMPLED_GPUS;
/** Largest tick, far above those of any run. */
const MAX_TICK = 2 ** 43;

export const Tick = z.int().min(0).max(MAX_TICK);

const SampleSeries = z
  .object({
    /** Null for the host. */
    pod_id: PodId.nullable(),
    /** GPUs whose figures the rows contain, in that order. */
    gpus: z.array(GpuUuid).max(MAX_SAMPLED_GPUS),
    /** Oldest first. */
    rows: z
      .array(z.object({ tick: Tick, values: z.array(Figure.nullable()).max(MAX_ROW) }))
      .max(MAX_PAGE_TICKS),
  })
  .refine(
    ({ gpus, rows }) => rows.every(({ values }) => values.length === rowLength(gpus.length)),
    'A row does not have the figures of its GPUs',
  );
export type SampleSeries = z.output<typeof SampleSeries>;

/** Number of figures in a row with `gpus` GPUs. */
export function rowLength(gpus: number): number {
  return SAMPLED_FIGURES.length + SAMPLED_GPU_FIGURES.length * gpus;
}

export const SampleHistory = z.object({
  /** Identifies the run of the agent. Samples of an earlier run are lost, and ticks are not comparable with it. */
  epoch: z.uuid(),
  /** The newest tick; null before the first sample. */
  newest: z.object({ tick: Tick, age_ms: Age }).nullable(),
  /** True if there are samples after the last tick of this response. */
  more: z.boolean(),
  series: z.array(SampleSeries).max(MAX_SERIES),
});
export type SampleHistory = z.output<typeof SampleHistory>;

/** Samples after tick `after` of the run `epoch`; all retained samples if the agent is in another run. */
export const SampleHistoryQuery = z.object({
  epoch: z.uuid().optional(),
  after: z.coerce.number().pipe(z.int().min(-1).max(MAX_TICK)).optional(),
});
export type SampleHistoryQuery = z.output<typeof SampleHistoryQuery>;

/** Path and query of a request for samples. */
export function sampleHistoryPath({ epoch, after }: SampleHistoryQuery): string {
  const query = new URLSearchParams({
    ...(epoch === undefined ? {} : { epoch }),
    ...(after === undefined ? {} : { after: String(after) }),
  });
  return `/v1/metrics/history?${query}`;
}
