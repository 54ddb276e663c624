/** GPU utilization of a pod, from its agent, or from the last answer if the agent does not answer. */

import { z } from 'zod';
import { MAX_HISTORY, type PodMetrics, SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import { described } from '#shared/api/described.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { createAgentCache } from '../executors/agent-cache.ts';
import { findExecutor } from '../executors/executor.service.ts';
import { GpuSample, gpuSampleOf, STALE_AFTER_MS } from '../executors/hardware-utilization.ts';
import { findAnyPod, goneAtOf, podNotFound } from './pod-access.ts';

const MS_PER_SECOND = 1_000;

export type GpuUtilizations = (podId: string) => Promise<GpuUtilization>;

/**
 * Creates the query for a pod's GPU utilization, which is open to any caller that has the pod's id. The query throws
 * `pod_not_found` for a pod that does not exist or has ended, and `upstream_unavailable` if its node does not answer
 * and has never answered.
 */
export function createGpuUtilizations(deps: {
  db: Database;
  clock: Clock;
  agents: Agents;
}): GpuUtilizations {
  const { db, clock, agents } = deps;
  const read = createAgentCache<PodMetrics | null>(clock);

  return async (podId) => {
    const pod = await findAnyPod(db, podId);
    if (pod === undefined || goneAtOf(pod, clock.now()) !== null) {
      throw podNotFound(`There is no pod ${podId}`);
    }
    const call = () => agents.clientOf(pod.executor_id).podMetrics(podId).catch(nullIfUnknown);
    const { last, isLive } = await read(podId, call);
    if (last === null) {
      throw new ApiError('upstream_unavailable', 'The node of this pod does not answer');
    }
    const simulated = last.value?.simulated ?? (await isSimulated(db, pod.executor_id));
    return utilizationOf(podId, { ...last, isLive, simulated, nowMs: clock.now() });
  };
}

/** Returns null if the agent does not have the pod, which may just have been rented. Rethrows other errors. */
function nullIfUnknown(error: unknown): null {
  if (error instanceof ApiError && error.code === 'pod_not_found') return null;
  throw error;
}

/** Returns true if the node has simulated GPUs; for a pod without measurements. */
async function isSimulated(db: Database, executorId: string): Promise<boolean> {
  return (await findExecutor(db, executorId))?.simulated === 1;
}

type Answer = {
  value: PodMetrics | null;
  atMs: number;
  isLive: boolean;
  simulated: boolean;
  nowMs: number;
};

function utilizationOf(
  podId: string,
  { value, atMs, isLive, simulated, nowMs }: Answer,
): GpuUtilization {
  const sampledMs = atMs - (value?.age_ms ?? 0);
  return {
    pod_id: podId,
    timestamp: naiveUtc(sampledMs),
    stale: !isLive || nowMs - sampledMs > STALE_AFTER_MS,
    simulated,
    interval_seconds: value?.interval_seconds ?? SAMPLE_INTERVAL_MS / MS_PER_SECOND,
    gpus: (value?.gpus ?? []).map(gpuSampleOf),
    history: (value?.history ?? []).flatMap((point) => {
      const { gpu_percent: gpu, gpu_memory_percent: memory } = point;
      if (gpu === null && memory === null) return [];
      const timestamp = naiveUtc(atMs - point.age_ms);
      return [{ timestamp, gpu_utilization: gpu ?? 0, memory_utilization: memory ?? 0 }];
    }),
  };
}

export const GpuUtilization = z
  .object(
    described(
      {
        pod_id: z.uuid(),
        timestamp: z.string(),
        stale: z.boolean(),
        simulated: z.boolean(),
        interval_seconds: z.int(),
        gpus: z.array(GpuSample),
        history: z
          .array(
            z.object(
              described(
                {
                  timestamp: z.string(),
                  gpu_utilization: z.number(),
                  memory_utilization: z.number(),
                },
                {
                  timestamp: 'Time of the point (UTC).',
                  gpu_utilization: 'Load in percent.',
                  memory_utilization: 'Used memory in percent.',
                },
              ),
            ),
          )
          .max(MAX_HISTORY),
      },
      {
        pod_id: 'Id of the pod.',
        timestamp: 'Time of the measurement (UTC).',
        stale: 'True if the measurement is older than a minute or the node does not answer.',
        simulated: 'True if the GPUs are simulated.',
        interval_seconds: 'Seconds between two points of the history.',
        gpus: 'GPUs of the pod; empty before the first measurement and for a pod without GPUs.',
        history:
          "Means over the pod's GPUs, oldest first, at most 60. Samples without readings of GPUs are omitted.",
      },
    ),
  )
  .meta({ id: 'GpuUtilization' });
export type GpuUtilization = z.output<typeof GpuUtilization>;
