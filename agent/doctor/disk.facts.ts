/** How full the disks are that images, pods and the agent's store lie on. */
import type { Clock } from '#shared/clock.ts';
import { type DiskUse, nearestFolder, readDiskUse } from '#shared/doctor/disk-use.ts';
import type { Told } from '#shared/doctor/told.ts';
import type { RunCommand } from '#shared/run-command.ts';

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
