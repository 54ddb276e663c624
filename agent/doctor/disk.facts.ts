/** How full the disks are that images, pods and the agent's store lie on. */

import { type DiskUse, nearestFolder, readDiskUse } from '#shared/check/disk-use.ts';
import type { Told } from '#shared/check/told.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';

export type DiskFacts = { engine: Told<DiskUse>; home: Told<DiskUse> };

export async function readDiskFacts(options: {
  clock: Clock;
  runCommand: RunCommand;
  /** Null: not known. */
  engineRoot: string | null;
  home: string;
}): Promise<DiskFacts> {
  const { engineRoot, home } = options;
  const [engine, ours] = await Promise.all([
    engineRoot === null
      ? { problem: 'the engine did not name its folder' }
      : readDiskUse({ ...options, path: engineRoot }),
    readDiskUse({ ...options, path: nearestFolder(home) }),
  ]);
  return { engine, home: ours };
}
