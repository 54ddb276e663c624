/** How full the disk is that images and containers fill. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { EngineInfo } from '../containers/engine/engine.ts';
import { createFreeSpace } from './host-probe.ts';

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
