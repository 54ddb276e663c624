/** How soon a pod will be ready, from what is known of its node and its image (contract 3.2). Pure. */
import { MAX_WAIT_MS } from '#shared/api/agent/bounds.ts';
import { BUILTIN_HOST } from '#shared/api/agent/images.ts';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';

/**
 * - `launches`: pods of the same image have run on the node, so that it is there
 * - `pull_speed`: the image's size by the node's measured speed
 * - `assumed`: one of the two, or the start-up, is not known: the constants below stand for it
 * - `progress`: a pull that is under way
 */
export const ETA_BASES = ['launches', 'pull_speed', 'assumed', 'progress'] as const;
export type EtaBasis = (typeof ETA_BASES)[number];

/** Of an image whose size nobody has seen: a common one with CUDA and a framework. */
export const ASSUMED_IMAGE_BYTES = 5_000_000_000;
/** Of a node that has pulled nothing yet: 400 Mbit/s. */
export const ASSUMED_BYTES_PER_SECOND = 50_000_000;
/** From the image's being there to the first login, where no launch was seen. */
export const ASSUMED_START_MS = 10_000;
/** A node that gets images more slowly is called slow: 100 Mbit/s. */
export const SLOW_BYTES_PER_SECOND = 12_500_000;
/** A launch that took longer has waited for its image as well. */
const LONGEST_START_MS = 30_000;

const MS_PER_SECOND = 1_000;
const BYTES_PER_MB = 1_000_000;

export type LaunchKnowledge = {
  /** Milliseconds from rent to running of launches of this image on the node. */
  sameImageMs: readonly number[];
  /** The same of whatever ran there lately. */
  anyImageMs: readonly number[];
  /** Nothing has to be pulled for it anywhere. */
  isBuiltin: boolean;
  imageBytes: number | null;
  bytesPerSecond: number | null;
};

export type LaunchEstimate = { ms: number; basis: EtaBasis; isCached: boolean };

/** From now to ready, at most `MAX_WAIT_MS`: what is known rests on what agents and renters say. */
export function launchEstimate(known: LaunchKnowledge): LaunchEstimate {
  const estimate = unboundedEstimate(known);
  return { ...estimate, ms: Math.min(MAX_WAIT_MS, estimate.ms) };
}

function unboundedEstimate(known: LaunchKnowledge): LaunchEstimate {
  const { imageBytes, bytesPerSecond, sameImageMs, isBuiltin } = known;
  // The fastest one: the image was there, as it will be for the next.
  if (sameImageMs.length > 0) {
    return { ms: Math.min(...sameImageMs), basis: 'launches', isCached: true };
  }
  const startMs = startMsOf(known.anyImageMs);
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

/** Null for a node that is not known to be slow. */
export function slownessWarning(bytesPerSecond: number | null): string | null {
  if (bytesPerSecond === null || bytesPerSecond >= SLOW_BYTES_PER_SECOND) return null;
  const speed = (bytesPerSecond / BYTES_PER_MB).toFixed(1);
  return `Images come to this node at about ${speed} MB/s: a large one takes long`;
}

/** By what an image is known. */
export function imageKey({
  reference,
  digest,
}: {
  reference: string;
  digest?: string | undefined;
}) {
  return digest === undefined ? reference : `${reference}@${digest}`;
}

/** The same of a pod's; null for one that is built on its node. */
export function imageKeyOf(image: PodSpecInput['image']): string | null {
  return 'reference' in image ? imageKey(image) : null;
}

/** Whether every node has it without a pull. */
export function isBuiltin(image: string): boolean {
  return image.startsWith(BUILTIN_HOST);
}
