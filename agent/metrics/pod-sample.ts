/** What a pod used at its latest samples: a bounded history, without clock or engine. Pure. */
import { type GpuReadings, MAX_HISTORY, type PodUsagePoint } from '#shared/api/agent/metrics.ts';
import type { ContainerUsage } from '../containers/engine/engine.ts';
import { idleSince, type Use } from './pod-idle.ts';

const NANOS_PER_MS = 1e6;
const PERCENT = 100;

export type Point = Omit<PodUsagePoint, 'age_ms'> & { atMs: number };

export type PodSample = {
  atMs: number;
  containerId: string;
  usage: ContainerUsage | null;
  usedCores: number | null;
  gpus: readonly GpuReadings[];
  /** Oldest first. */
  history: readonly Point[];
  /** Since when nobody has used it; null: somebody does, or that is not known. */
  idleSinceMs: number | null;
  use: Use;
};

export type Look = Pick<PodSample, 'atMs' | 'containerId' | 'usage' | 'gpus'> & {
  /** False: the driver gave no new figures, and old ones make no point of the history. */
  isNew: boolean;
  /** GPUs that the pod has, measured or not. */
  gpuCount: number;
  /** Open SSH sessions; null: not known. */
  sessions: number | null;
};

/** `before` is null for the first sample of a pod. */
export function nextSample(
  before: PodSample | null,
  { isNew, gpuCount, sessions, ...look }: Look,
): PodSample {
  const history = before?.history ?? [];
  const point = isNew ? pointOf(look) : null;
  const cores = usedCores(before, look);
  const isMeasured = isNew && look.gpus.length === gpuCount;
  const use = {
    ...{ atMs: look.atMs, usedCores: cores, network: look.usage?.network ?? null, sessions },
    gpuPercents: isMeasured
      ? look.gpus.map((gpu) => gpu.utilization_percent)
      : Array.from({ length: gpuCount }, () => null),
  };
  return {
    ...look,
    usedCores: cores,
    ...{ use, idleSinceMs: idleSince(before, use) },
    history: point === null ? history : [...history, point].slice(-MAX_HISTORY),
  };
}

/** Null for the first sample of a container: the engine tells what was used since its start only. */
function usedCores(
  before: Pick<PodSample, 'atMs' | 'containerId' | 'usage'> | null,
  now: Pick<PodSample, 'atMs' | 'containerId' | 'usage'>,
): number | null {
  const from = before?.containerId === now.containerId ? before : null;
  if (from === null || from.usage === null || now.usage === null) return null;
  const tookNanos = (now.atMs - from.atMs) * NANOS_PER_MS;
  const used = now.usage.cpuNanos - from.usage.cpuNanos;
  // Started anew, the container counts from 0 again.
  return tookNanos <= 0 || used < 0 ? null : rounded(used / tookNanos, 1_000);
}

function pointOf({ atMs, gpus }: Pick<PodSample, 'atMs' | 'gpus'>): Point | null {
  if (gpus.length === 0) return null;
  const memory = gpus.map(({ memory_used_mib: used, memory_total_mib: total }) =>
    used === null || total <= 0 ? null : (used / total) * PERCENT,
  );
  return {
    atMs,
    gpu_percent: meanOf(gpus.map((gpu) => gpu.utilization_percent)),
    gpu_memory_percent: meanOf(memory),
  };
}

function meanOf(figures: readonly (number | null)[]): number | null {
  const known = figures.filter((figure) => figure !== null);
  if (known.length === 0) return null;
  return rounded(known.reduce((sum, figure) => sum + figure, 0) / known.length, 10);
}

function rounded(figure: number, steps: number): number {
  return Math.round(figure * steps) / steps;
}
