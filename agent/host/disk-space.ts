/** Free space of the disk that pods fill, and the space on it that programs other than the container engine use. */
import { statfs } from 'node:fs/promises';
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import type { EngineInfo } from '../containers/engine/engine.ts';
import type { DiskSpace } from '../pods/disk-limit.ts';
import { createFreeSpace } from './host-probe.ts';

/**
 * Time for which a measurement is reused, ms. Long, because the engine walks all files of containers and
 * volumes to measure its disk use.
 */
const FRESH_MS = 3_600_000;
const BYTES_PER_KIB = 1_024;
const READ_WITHIN_MS = 2_000;

/** KiB used by other programs, at most an hour old; null before the first measurement and if it failed. */
export type SideDisk = (diskPath: string) => number | null;

/** Measures in the background, because `engineBytes` may take minutes. */
export function createSideDisk(options: {
  clock: Clock;
  engineBytes(): Promise<number>;
}): SideDisk {
  const { clock, engineBytes } = options;
  let measured: number | null = null;
  let startedMs = Number.NEGATIVE_INFINITY;
  let isMeasuring = false;

  async function measure(diskPath: string): Promise<void> {
    try {
      const engine = await engineBytes();
      const { bsize, blocks, bfree } = await statfs(diskPath);
      measured = Math.max(0, Math.floor(((blocks - bfree) * bsize - engine) / BYTES_PER_KIB));
    } catch {
      measured = null;
    } finally {
      isMeasuring = false;
    }
  }

  return (diskPath) => {
    const nowMs = clock.monotonicMs();
    if (!isMeasuring && nowMs - startedMs >= FRESH_MS) {
      isMeasuring = true;
      startedMs = nowMs;
      void measure(diskPath);
    }
    return measured;
  };
}

/**
 * Returns a function that reads the space of the disk with the engine's data, of which blocks reserved for root count as
 * free, because pods can fill them. Rejects if the engine or the disk does not answer.
 */
export function createDiskSpace(
  clock: Clock,
  engine: { info(): Promise<Pick<EngineInfo, 'rootDir'>> },
): () => Promise<DiskSpace> {
  let rootDir: string | null = null;
  let reading: Promise<DiskSpace> | null = null;

  async function read(): Promise<DiskSpace> {
    rootDir ??= (await engine.info()).rootDir;
    const { bsize, blocks, bfree, files, ffree } = await statfs(rootDir);
    return {
      freeBytes: bfree * bsize,
      totalBytes: blocks * bsize,
      freeFiles: ffree,
      totalFiles: files,
    };
  }

  return () => {
    // One at a time, because a statfs of a dead mount blocks a thread of the process for ever.
    reading ??= read().finally(() => {
      reading = null;
    });
    return withDeadline(clock, READ_WITHIN_MS, reading);
  };
}

const PERCENT = 100;

/**
 * Returns the used percentage of the disk with the engine's data, without blocks reserved for root. Rejects if the
 * engine or the disk does not answer.
 */
export function createDiskPercent(
  clock: Clock,
  engine: { info(): Promise<Pick<EngineInfo, 'rootDir'>> },
): () => Promise<number> {
  const spaceOf = createFreeSpace(clock);
  return async () => {
    const { total_kib, free_kib } = await spaceOf((await engine.info()).rootDir);
    return total_kib === 0 ? 0 : (1 - free_kib / total_kib) * PERCENT;
  };
}
