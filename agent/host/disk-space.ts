/** What of the disk that pods fill is used by others than the container engine. */
import { statfs } from 'node:fs/promises';
import type { Clock } from '#shared/runtime/clock.ts';
import type { EngineInfo } from '../containers/engine/engine.ts';
import { createFreeSpace } from './host-probe.ts';

/** The engine walks all that containers and volumes have: seldom. */
const FRESH_MS = 3_600_000;
const BYTES_PER_KIB = 1_024;

/** KiB, as it was within the hour; null before it is known, and where it cannot be told. */
export type SideDisk = (diskPath: string) => number | null;

/** `engineBytes`: what the engine has on its disk. Never waits for it: that may take minutes. */
export function createSideDisk(options: {
  clock: Clock;
  engineBytes(): Promise<number>;
}): SideDisk {
  const { clock, engineBytes } = options;
  let known: number | null = null;
  let askedMs = Number.NEGATIVE_INFINITY;
  let isAsking = false;

  async function ask(diskPath: string): Promise<void> {
    try {
      const own = await engineBytes();
      const { bsize, blocks, bfree } = await statfs(diskPath);
      known = Math.max(0, Math.floor(((blocks - bfree) * bsize - own) / BYTES_PER_KIB));
    } catch {
      known = null;
    } finally {
      isAsking = false;
    }
  }

  return (diskPath) => {
    const nowMs = clock.monotonicMs();
    if (!isAsking && nowMs - askedMs >= FRESH_MS) {
      isAsking = true;
      askedMs = nowMs;
      void ask(diskPath);
    }
    return known;
  };
}

// MERGED agent/host/disk-space.ts: How full the disk is that images and containers fill.
const PERCENT = 100;

/** Of the engine's own folder, without what the file system keeps for root. Rejects when either does not answer. */
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
