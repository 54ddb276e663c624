/**
 * Current usage of a host and its pods (GET /v1/metrics/host, GET /v1/pods/{id}/metrics). Unknown figures are null,
 * never 0.
 */
import { z } from 'zod';
import { Age, Figure, MAX_DEVICES, Text } from './bounds.ts';
import { GpuDevice, Inventory } from './inventory.ts';

export const SAMPLE_INTERVAL_MS = 10_000;
/** Samples retained per pod: ten minutes. */
export const MAX_HISTORY = 60;
const MAX_INTERVAL_SECONDS = 3_600;
/** Longest idle time: ten years. */
const MAX_IDLE_MS = 3_650 * 86_400_000;

/** Readings of a GPU or MIG device. */
export const GpuReadings = GpuDevice.omit({
  leased_by: true,
  lease_state: true,
  cordoned: true,
});
export type GpuReadings = z.output<typeof GpuReadings>;

const Sampled = {
  /** Age of the sample when the response was sent. Unlike a time, it does not depend on the host's clock. */
  age_ms: Age,
  /** True when the GPUs are simulated: nothing computes on them. */
  simulated: z.boolean(),
};

export const HostMetrics = z.object({
  ...Sampled,
  /** `utilization_percent`: since the previous sample. */
  cpu: Inventory.shape.cpu.extend({ load_1m: Figure.nullable() }),
  memory: Inventory.shape.memory,
  disk: Inventory.shape.disk,
  /** Traffic of the interfaces with a default route, since the previous sample. */
  network: z.object({
    rx_bytes_per_second: Figure.nullable(),
    tx_bytes_per_second: Figure.nullable(),
  }),
  gpus: z.array(GpuReadings).max(MAX_DEVICES),
  /** Why some or all GPUs could not be read; null if they could. */
  gpu_error: Text.nullable(),
});
export type HostMetrics = z.output<typeof HostMetrics>;

/** Means over the pod's GPUs, 0-100; null if no GPU reports them. */
export const PodUsagePoint = z.object({
  age_ms: Age,
  gpu_percent: Figure.nullable(),
  gpu_memory_percent: Figure.nullable(),
});
export type PodUsagePoint = z.output<typeof PodUsagePoint>;

export const PodMetrics = z.object({
  ...Sampled,
  /** Null if the pod has no sample yet; no usage is known then. */
  age_ms: Sampled.age_ms.nullable(),
  /** Seconds between two points of the history. */
  interval_seconds: z.int().positive().max(MAX_INTERVAL_SECONDS),
  /** Cores used since the previous sample, and the pod's limit. */
  cpu: z.object({ used_cores: Figure.nullable(), limit_cores: Figure }),
  /** Memory in use, without the page cache, which the kernel can reclaim. */
  memory: z.object({
    used_bytes: z.int().nonnegative().nullable(),
    limit_bytes: z.int().nonnegative(),
  }),
  /**
   * Time for which the pod had been idle at its last sample: no GPU use, only background use of cores and network, no
   * SSH session. Null if the pod is in use, the time is unknown, or the agent does not report it.
   */
  idle_ms: z.int().nonnegative().max(MAX_IDLE_MS).nullable().default(null),
  /** The pod's GPUs only. */
  gpus: z.array(GpuReadings).max(MAX_DEVICES),
  /** Oldest first; empty for a pod without GPUs. */
  history: z.array(PodUsagePoint).max(MAX_HISTORY),
});
export type PodMetrics = z.output<typeof PodMetrics>;
