/** Estimates the time until a pod is ready, from the history of its node and image. Pure. */
import { MAX_WAIT_MS } from '#shared/api/agent/bounds.ts';
import { BUILTIN_HOST } from '#shared/api/agent/images.ts';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';

/**
 * - `launches`: pods with the same image ran on the node, so the image is on the node
 * - `pull_speed`: size of the image divided by the node's measured speed
 * - `assumed`: the size or the speed is unknown, and a constant of this module replaces it; also for an image that is
 *   built into the agent
 * - `progress`: the progress of the running pull
 */
export const ETA_BASES = ['launches', 'pull_speed', 'assumed', 'progress'] as const;
export type EtaBasis = (typeof ETA_BASES)[number];

/** Assumed size of an unknown image: a common image with CUDA and a framework. */
export const ASSUMED_IMAGE_BYTES = 5_000_000_000;
/** Assumed speed of a node without pulls: 400 Mbit/s. */
export const ASSUMED_BYTES_PER_SECOND = 50_000_000;
/** Assumed time from the end of the pull to the first login. */
export const ASSUMED_START_MS = 10_000;
/** Nodes with a lower speed cause a warning: 100 Mbit/s. */
export const SLOW_BYTES_PER_SECOND = 12_500_000;
/** A launch that took longer is assumed to have included a pull. */
const LONGEST_START_MS = 30_000;

const MS_PER_SECOND = 1_000;
const BYTES_PER_MB = 1_000_000;

export type LaunchHistory = {
  /** Milliseconds from rent to running, for this image on the node. */
  sameImageMs: readonly number[];
  /** Milliseconds from rent to running, for any image on the node. */
  anyImageMs: readonly number[];
  /** True if the image is built into every agent. */
  isBuiltin: boolean;
  imageBytes: number | null;
  bytesPerSecond: number | null;
};

export type LaunchEstimate = { ms: number; basis: EtaBasis; isCached: boolean };

/** Estimates at most `MAX_WAIT_MS`, because agents and renters supply the figures. */
export function launchEstimate(history: LaunchHistory): LaunchEstimate {
  const estimate = unboundedEstimate(history);
  return { ...estimate, ms: Math.min(MAX_WAIT_MS, estimate.ms) };
}

function unboundedEstimate(history: LaunchHistory): LaunchEstimate {
  const { imageBytes, bytesPerSecond, sameImageMs, isBuiltin } = history;
  // The fastest launch needed no pull, and the next launch will not need a pull either.
  if (sameImageMs.length > 0) {
    return { ms: Math.min(...sameImageMs), basis: 'launches', isCached: true };
  }
  const startMs = startMsOf(history.anyImageMs);
  if (isBuiltin) return { ms: startMs, basis: 'assumed', isCached: true };
  const pullMs = pullMsOf(
    imageBytes ?? ASSUMED_IMAGE_BYTES,
    bytesPerSecond ?? ASSUMED_BYTES_PER_SECOND,
  );
  const isMeasured = imageBytes !== null && bytesPerSecond !== null;
  return { ms: pullMs + startMs, basis: isMeasured ? 'pull_speed' : 'assumed', isCached: false };
}

function pullMsOf(bytes: number, bytesPerSecond: number): number {
  return (bytes / Math.max(1, bytesPerSecond)) * MS_PER_SECOND;
}

function startMsOf(launchesMs: readonly number[]): number {
  return launchesMs.length === 0 ? ASSUMED_START_MS : Math.min(...launchesMs, LONGEST_START_MS);
}

/** Returns a warning for a slow node; null if the node is fast enough or was never measured. */
export function slownessWarning(bytesPerSecond: number | null): string | null {
  if (bytesPerSecond === null || bytesPerSecond >= SLOW_BYTES_PER_SECOND) return null;
  const speed = (bytesPerSecond / BYTES_PER_MB).toFixed(1);
  return `This node pulls images at about ${speed} MB/s: a large image takes long`;
}

/** Identifies an image by reference and digest. */
export function imageKey({
  reference,
  digest,
}: {
  reference: string;
  digest?: string | undefined;
}) {
  return digest === undefined ? reference : `${reference}@${digest}`;
}

/** Null for an image that is built on the node. */
export function imageKeyOf(image: PodSpecInput['image']): string | null {
  return 'reference' in image ? imageKey(image) : null;
}

/** Returns true for an image that needs no pull. */
export function isBuiltin(image: string): boolean {
  return image.startsWith(BUILTIN_HOST);
}
