/** The periodic work on backups that no node is needed for: schedules and clean-up, each at its pace. */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { BackupUpkeep } from './backup-upkeep.ts';
import type { DrillUpkeep } from './drill-upkeep.ts';
import type { OperationSync } from './operation-sync.ts';

/** Pause between looks at what is due. */
const LOOK_INTERVAL_MS = 5_000;
const CLEANUP_INTERVAL_MS = 60_000;

export type BackupJobDeps = {
  clock: Clock;
  log: Log;
  upkeep: BackupUpkeep;
  drills: DrillUpkeep;
  operations: OperationSync;
  cleanUp: () => Promise<void>;
  wake(executorId: string): void;
};

export function createBackupJob(deps: BackupJobDeps) {
  const { clock, log, upkeep, drills, operations, cleanUp, wake } = deps;
  let loops: Loop[] = [];

  async function look(): Promise<void> {
    await operations.failOrphans();
    for (const executorId of await upkeep.runDue()) wake(executorId);
    for (const executorId of await drills.runDue()) wake(executorId);
    await upkeep.expire();
  }

  function loop(intervalMs: number, run: () => Promise<void>): Loop {
    const onError = (error: unknown) => log.error({ err: error }, `backups: ${messageOf(error)}`);
    return startLoop({ clock, intervalMs, run, onError });
  }

  return {
    /** One look at everything due, and one clean-up: tests call it instead of `start`. */
    async runOnce(): Promise<void> {
      await look();
      await cleanUp();
    },

    start(): void {
      if (loops.length > 0) return;
      // Cleaning takes minutes where much is to be moved; schedules do not wait for it.
      loops = [loop(LOOK_INTERVAL_MS, look), loop(CLEANUP_INTERVAL_MS, cleanUp)];
    },

    async stop(): Promise<void> {
      await Promise.all(loops.map((each) => each.stop()));
      loops = [];
    },
  };
}
