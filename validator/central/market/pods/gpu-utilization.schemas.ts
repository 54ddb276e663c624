/** How busy a pod's GPUs are, on the wire (contract 3.2). */
import { z } from 'zod';
import { MAX_HISTORY } from '#shared/api/agent/metrics.ts';
import { GpuSample } from '../executors/gpu-sample.ts';

export const GpuUtilization = z
  .object({
    pod_id: z.uuid(),
    timestamp: z.string(),
    /** Older than a minute, or the node does not answer. */
    stale: z.boolean(),
    /** The GPUs are simulated: nothing computes on them. */
    simulated: z.boolean(),
    /** Between two points of the history. */
    interval_seconds: z.int(),
    /** The pod's own only; empty while nothing was measured, and for a pod without GPUs. */
    gpus: z.array(GpuSample),
    /** Oldest first; means over the pod's GPUs. */
    history: z
      .array(
        z.object({
          timestamp: z.string(),
          gpu_utilization: z.number().nullable(),
          memory_utilization: z.number().nullable(),
        }),
      )
      .max(MAX_HISTORY),
  })
  .meta({ id: 'GpuUtilization' });
export type GpuUtilization = z.output<typeof GpuUtilization>;
