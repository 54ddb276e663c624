/** A pod's latest sample, bounded history, and idle time. Pure. */
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
  /** Start of the idle time; null if the pod is in use or its use is unknown. */
  idleSinceMs: number | null;
  use: Use;
};

export type Measurement = Pick<PodSample, 'atMs' | 'containerId' | 'usage' | 'gpus'> & {
  /** False if the driver returned old values, which are not added to the history. */
  isNew: boolean;
  /** Number of GPUs of the pod, measured or not. */
  gpuCount: number;
  /** Open SSH sessions; null if unknown. */
  sessions: number | null;
};

/** `before` is null for the first sample of a pod. */
export function nextSample(
  before: PodSample | null,
  { isNew, gpuCount, sessions, ...measured }: Measurement,
): PodSample {
  const history = before?.history ?? [];
  const point = isNew ? pointOf(measured) : null;
  const cores = usedCores(before, measured);
  const isMeasured = isNew && measured.gpus.length === gpuCount;
  const use = {
    atMs: measured.atMs,
    usedCores: cores,
    network: measured.usage?.network ?? null,
    sessions,
    gpuPercents: isMeasured
      ? measured.gpus.map((gpu) => gpu.utilization_percent)
      : Array.from({ length: gpuCount }, () => null),
  };
  return {
    ...measured,
    usedCores: cores,
    use,
    idleSinceMs: idleSince(before, use),
    history: point === null ? history : [...history, point].slice(-MAX_HISTORY),
  };
}

/** Null for the first sample of a container, because the counters are cumulative. */
function usedCores(
  before: Pick<PodSample, 'atMs' | 'containerId' | 'usage'> | null,
  now: Pick<PodSample, 'atMs' | 'containerId' | 'usage'>,
): number | null {
  const from = before?.containerId === now.containerId ? before : null;
  if (from === null || from.usage === null || now.usage === null) return null;
  const tookNanos = (now.atMs - from.atMs) * NANOS_PER_MS;
  const used = now.usage.cpuNanos - from.usage.cpuNanos;
  // A restarted container counts from 0.
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

/** Maximum utilization of each GPU of an idle pod, in percent. */
const MAX_GPU_PERCENT = 3;
/** Maximum processor use of an idle pod, in cores: servers that wait for requests use a little. */
const MAX_CORES = 0.1;
/** Maximum traffic of an idle pod, received and sent together. */
const MAX_BYTES_PER_SECOND = 2_048;
/** Maximum time between two samples; what happened in a longer gap is unknown. */
const MAX_GAP_MS = 3 * SAMPLE_INTERVAL_MS;
const MS_PER_SECOND = 1_000;

export type Use = {
  atMs: number;
  /** Null if unknown. */
  usedCores: number | null;
  network: ContainerUsage['network'];
  /** Utilization of each GPU of the pod, 0-100; null if unknown. */
  gpuPercents: readonly (number | null)[];
  /** Open SSH sessions; null if unknown. */
  sessions: number | null;
};

export type IdleBefore = { idleSinceMs: number | null; use: Use };

/**
 * Returns the time of the first sample in the current series of idle samples; null if the pod is in use or its use is
 * unknown. A renter's idle shutdown counts from that time.
 */
export function idleSince(before: IdleBefore | null, now: Use): number | null {
  if (before === null || !isUnused(before.use, now)) return null;
  const isContinuous = now.atMs - before.use.atMs <= MAX_GAP_MS;
  return isContinuous && before.idleSinceMs !== null ? before.idleSinceMs : now.atMs;
}

function isUnused(before: Use, { atMs, usedCores, network, gpuPercents, sessions }: Use): boolean {
  const seconds = (atMs - before.atMs) / MS_PER_SECOND;
  if (sessions !== 0 || usedCores === null || usedCores > MAX_CORES || seconds <= 0) return false;
  if (gpuPercents.some((percent) => percent === null || percent > MAX_GPU_PERCENT)) return false;
  if (network === null || before.network === null) return false;
  const transferred = bytesOf(network) - bytesOf(before.network);
  return transferred >= 0 && transferred / seconds <= MAX_BYTES_PER_SECOND;
}

function bytesOf({ receivedBytes, sentBytes }: NonNullable<ContainerUsage['network']>): number {
  return receivedBytes + sentBytes;
}
