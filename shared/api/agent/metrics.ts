/** What a host and its pods use just now (GET /v1/metrics/host, GET /v1/pods/{id}/metrics). Absent figures are null, never 0. */
import { z } from 'zod';
import { Age, Figure, MAX_DEVICES, Text } from './bounds.ts';
import { GpuDevice, Inventory } from './inventory.ts';

/** Between two samples of the agent. */
export const SAMPLE_INTERVAL_MS = 10_000;
/** Samples that are kept of a pod: ten minutes. */
export const MAX_HISTORY = 60;
const MAX_INTERVAL_SECONDS = 3_600;
/** Ten years. */
const MAX_IDLE_MS = 3_650 * 86_400_000;

/** One GPU or MIG device as measured. */
export const GpuReadings = GpuDevice.omit({
  leased_by: true,
  lease_state: true,
  cordoned: true,
});
export type GpuReadings = z.output<typeof GpuReadings>;

const Sampled = {
  /** Since the sample was taken, when this was answered. Clocks of hosts differ; ages do not. */
  age_ms: Age,
  /** True when the GPUs are simulated: nothing computes on them. */
  simulated: z.boolean(),
};

export const HostMetrics = z.object({
  ...Sampled,
  /** `utilization_percent` since the sample before. */
  cpu: Inventory.shape.cpu.extend({ load_1m: Figure.nullable() }),
  memory: Inventory.shape.memory,
  disk: Inventory.shape.disk,
  /** Through the interfaces of the default routes, since the sample before. */
  network: z.object({
    rx_bytes_per_second: Figure.nullable(),
    tx_bytes_per_second: Figure.nullable(),
  }),
  gpus: z.array(GpuReadings).max(MAX_DEVICES),
  /** Why some or all GPUs could not be read, in words; null when they could. */
  gpu_error: Text.nullable(),
});
export type HostMetrics = z.output<typeof HostMetrics>;

/** Means over the pod's GPUs, 0-100; null where none of them tells. */
export const PodUsagePoint = z.object({
  age_ms: Age,
  gpu_percent: Figure.nullable(),
  gpu_memory_percent: Figure.nullable(),
});
export type PodUsagePoint = z.output<typeof PodUsagePoint>;

export const PodMetrics = z.object({
  ...Sampled,
  /** Null: no sample was taken of the pod so far; nothing below is known. */
  age_ms: Sampled.age_ms.nullable(),
  /** Between two points of the history. */
  interval_seconds: z.int().positive().max(MAX_INTERVAL_SECONDS),
  /** Cores in use since the sample before, and those that it may use. */
  cpu: z.object({ used_cores: Figure.nullable(), limit_cores: Figure }),
  /** Without what the kernel gives back when asked: cached files. */
  memory: z.object({
    used_bytes: z.int().nonnegative().nullable(),
    limit_bytes: z.int().nonnegative(),
  }),
  /**
   * For so long, at its last sample, nobody had used it: no GPU, no more of its cores and network than what waits for
   * somebody takes, no SSH session. Null: somebody does, or that is not known, as with agents that do not tell.
   */
  idle_ms: z.int().nonnegative().max(MAX_IDLE_MS).nullable().default(null),
  /** The pod's own only. */
  gpus: z.array(GpuReadings).max(MAX_DEVICES),
  /** Oldest first; empty for a pod without GPUs. */
  history: z.array(PodUsagePoint).max(MAX_HISTORY),
});
export type PodMetrics = z.output<typeof PodMetrics>;
