/** What a pod used at its latest samples: a bounded history, without clock or engine. Pure. */
import {
  type GpuReadings,
  MAX_HISTORY,
  type PodUsagePoint,
  SAMPLE_INTERVAL_MS,
} from '#shared/api/agent/metrics.ts';
import type { ContainerUsage } from '../containers/engine/engine.ts';

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

// MERGED agent/metrics/pod-sample.ts: Since when nobody has used a pod: what the renter's wish to have it stopped then goes by (README, "Idle pods"). Pure.
/** Of each GPU. */
const MAX_GPU_PERCENT = 3;
/** What servers that wait for somebody use. */
const MAX_CORES = 0.1;
/** Both ways together. */
const MAX_BYTES_PER_SECOND = 2_048;
/** After samples so far apart nobody knows what was in between. */
const LONGEST_GAP_MS = 3 * SAMPLE_INTERVAL_MS;
const MS_PER_SECOND = 1_000;

export type Use = {
  atMs: number;
  /** Null: not known. */
  usedCores: number | null;
  network: ContainerUsage['network'];
  /** Of each GPU of the pod, 0-100; null where it is not known. */
  gpuPercents: readonly (number | null)[];
  /** Open SSH sessions; null: not known. */
  sessions: number | null;
};

export type IdleBefore = { idleSinceMs: number | null; use: Use };

/** When the first of the samples without use was taken that this one is the last of; null: it is in use, or that is not known. */
export function idleSince(before: IdleBefore | null, now: Use): number | null {
  if (before === null || !isUnused(before.use, now)) return null;
  const isSeen = now.atMs - before.use.atMs <= LONGEST_GAP_MS;
  return isSeen && before.idleSinceMs !== null ? before.idleSinceMs : now.atMs;
}

function isUnused(before: Use, { atMs, usedCores, network, gpuPercents, sessions }: Use): boolean {
  const seconds = (atMs - before.atMs) / MS_PER_SECOND;
  if (sessions !== 0 || usedCores === null || usedCores > MAX_CORES || seconds <= 0) return false;
  if (gpuPercents.some((percent) => percent === null || percent > MAX_GPU_PERCENT)) return false;
  if (network === null || before.network === null) return false;
  const moved = bytesOf(network) - bytesOf(before.network);
  return moved >= 0 && moved / seconds <= MAX_BYTES_PER_SECOND;
}

function bytesOf({ receivedBytes, sentBytes }: NonNullable<ContainerUsage['network']>): number {
  return receivedBytes + sentBytes;
}
