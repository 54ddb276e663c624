/** How busy a pod's GPUs are: asked of its agent, or as last known while that does not answer (contract 3.2). */
import { type PodMetrics, SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { createAgentLooks } from '../executors/agent-looks.ts';
import { findExecutor } from '../executors/executor.service.ts';
import { gpuSampleOf, STALE_AFTER_MS } from '../executors/gpu-sample.ts';
import type { GpuUtilization } from './gpu-utilization.schemas.ts';
import { findAnyPod, goneAtOf, podNotFound } from './pod-access.ts';

const MS_PER_SECOND = 1_000;

export type GpuUtilizations = (podId: string) => Promise<GpuUtilization>;

/**
 * Whoever knows a pod's id may ask. Throws `pod_not_found` for one that is not there or has ended,
 * `upstream_unavailable` while its node does not answer and never has.
 */
export function createGpuUtilizations(deps: {
  db: Database;
  clock: Clock;
  agents: Agents;
}): GpuUtilizations {
  const { db, clock, agents } = deps;
  const look = createAgentLooks<PodMetrics | null>(clock);

  return async (podId) => {
    const pod = await findAnyPod(db, podId);
    if (pod === undefined || goneAtOf(pod, clock.now()) !== null) {
      throw podNotFound(`There is no pod ${podId}`);
    }
    const ask = () => agents.clientOf(pod.executor_id).podMetrics(podId).catch(nullIfUnknown);
    const { last, isLive } = await look(podId, ask);
    if (last === null) {
      throw new ApiError('upstream_unavailable', 'The node of this pod does not answer');
    }
    const simulated = last.value?.simulated ?? (await isSimulated(db, pod.executor_id));
    return utilizationOf(podId, { ...last, isLive, simulated, nowMs: clock.now() });
  };
}

/** The agent has not heard of a pod that was rented a moment ago. */
function nullIfUnknown(error: unknown): null {
  if (error instanceof ApiError && error.code === 'pod_not_found') return null;
  throw error;
}

/** As its inventory says, for a pod that was not measured yet. */
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
    history: (value?.history ?? []).map((point) => ({
      timestamp: naiveUtc(atMs - point.age_ms),
      gpu_utilization: point.gpu_percent,
      memory_utilization: point.gpu_memory_percent,
    })),
  };
}
