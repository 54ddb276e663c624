/** Scheduled drills: each schedule's newest backup is read back once in an interval, one at a time on a node. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import type { Database } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../platform/identity.ts';
import { findConfig } from './backup.store.ts';
import { nextRunAt } from './backup-schedule.ts';
import { beginDrill } from './drill.begin.ts';
import { DRILL_RETRY_MS } from './drill.displace.ts';
import {
  findDrillExecutor,
  findNewestBackup,
  isDrilling,
  listDueDrills,
  setNextDrill,
} from './drill.store.ts';

/** Taken per look; the rest comes with the next one. */
const BATCH = 100;

export type DrillUpkeep = ReturnType<typeof createDrillUpkeep>;

export function createDrillUpkeep(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  /** Hours between two drills of a schedule; 0: there are none. */
  everyHours: number;
}) {
  const { db, clock, everyHours } = deps;

  /** On a grid of its own, not that of the pod's backups. */
  const nextDrillAt = (podId: string) => nextRunAt(`drill ${podId}`, everyHours, clock.now());

  /** One, whichever of several processes gets there first; the executor where one began. */
  function run(configId: string, podId: string): Promise<string | null> {
    return db.transaction().execute(async (tx) => {
      const pod = await findAnyPod(tx, podId);
      if (pod === undefined) return null;
      const executorId = await findDrillExecutor(tx, pod);
      if (executorId !== null) await lockRow(tx, 'executors', executorId);
      await lockRow(tx, 'pods', podId);
      const config = await findConfig(tx, configId);
      if (config?.next_at == null || (config.drill_at ?? 0) > clock.now()) return null;
      const backup = config.drill_at === null ? undefined : await findNewestBackup(tx, podId);
      await setNextDrill(tx, podId, nextDrillAt(podId));
      if (backup === undefined) return null;
      const wish = { backup, executorId, occasion: 'SCHEDULED', actor: SYSTEM_ACTOR } as const;
      const isTaken = executorId !== null && (await isDrilling(tx, executorId));
      const begun = isTaken ? 'later' : await beginDrill(tx, deps, wish);
      if (begun === null) return null;
      if (begun !== 'later' && !('activeId' in begun)) return executorId;
      await setNextDrill(tx, podId, clock.now() + DRILL_RETRY_MS);
      return null;
    });
  }

  return {
    /** Begins every drill whose time has come, one for all that a downtime has cost; on which executors. */
    async runDue(): Promise<string[]> {
      if (everyHours === 0) return [];
      const executorIds: string[] = [];
      for (const { id, pod_id: podId } of await listDueDrills(db, clock.now(), BATCH)) {
        const executorId = await run(id, podId);
        if (executorId !== null) executorIds.push(executorId);
      }
      return executorIds;
    },
  };
}
