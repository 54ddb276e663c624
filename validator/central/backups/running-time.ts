/**
 * Total time for which the central API has run, over all its starts. It is measured with the monotonic clock, so that
 * no change of the wall clock shortens the grace before data is removed.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database } from '../platform/database/tables.ts';
import type { Processes } from '../platform/processes.ts';

export function createRunningTime(deps: { db: Database; clock: Clock; processes: Processes }) {
  const { db, clock, processes } = deps;
  let recordedMs = clock.monotonicMs();

  return {
    /** Adds the time since the last call. Only one live process counts; another takes over when it has ended. */
    async record(): Promise<void> {
      const nowMs = clock.monotonicMs();
      const ranMs = Math.floor(nowMs - recordedMs);
      await db.transaction().execute(async (tx) => {
        const { boot_id: holder } = await tx
          .selectFrom('running_time')
          .select('boot_id')
          .executeTakeFirstOrThrow();
        if (holder !== processes.bootId && (await processes.isAlive(tx, holder))) return;
        await tx
          .updateTable('running_time')
          .set((eb) => ({ total_ms: eb('total_ms', '+', ranMs), boot_id: processes.bootId }))
          .where('boot_id', '=', holder)
          .execute();
      });
      recordedMs = nowMs;
    },
  };
}
