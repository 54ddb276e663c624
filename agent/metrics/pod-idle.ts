/** Since when nobody has used a pod: what the renter's wish to have it stopped then goes by (README, "Idle pods"). Pure. */
import { SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import type { ContainerUsage } from '../containers/engine/engine.ts';

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
