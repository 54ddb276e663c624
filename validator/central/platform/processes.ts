/**
 * Heartbeats of the processes of the central API. A process without a heartbeat for LEASE_MS counts as dead, and other
 * processes may take over its claims. If the process was alive and only slow, its transaction that depends on a lost
 * claim is rolled back, so nothing is done twice.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { isDiskFull } from '#shared/runtime/sqlite.ts';
import { prepared, type Slots } from './database/prepared.ts';
import type { Database, Db } from './database/tables.ts';

const BEAT_INTERVAL_MS = 2_000;
/**
 * Time without a heartbeat after which a process counts as dead; much longer than the interval of heartbeats and than
 * the clock differences between synchronised hosts.
 */
export const LEASE_MS = 10_000;

export type ProcessesDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  bootId: string;
  /** True if other processes can use the database (PostgreSQL). */
  shared: boolean;
  /** Shortest pause between two heartbeats; for a process that is alone on its database. */
  pollMs?: number;
};

export type Processes = ReturnType<typeof createProcesses>;

export function createProcesses({ db, clock, log, bootId, shared, pollMs = 0 }: ProcessesDeps) {
  let loop: Loop | null = null;
  let problem: string | null = null;
  let count = 1;

  /** Returns the ids of the other live processes. */
  async function others(handle: Db): Promise<string[]> {
    const alive = await listAliveSince(handle, clock.now() - LEASE_MS);
    return alive.filter((id) => id !== bootId);
  }

  /**
   * Stores a heartbeat. A failure because PostgreSQL is unreachable or a disk is full is not reported as a problem of
   * this process, because a restart would not help.
   */
  async function beat(): Promise<void> {
    try {
      await storeHeartbeat(db, bootId, clock.now());
      problem = null;
    } catch (error) {
      problem = shared || isDiskFull(error) ? null : messageOf(error);
      throw error;
    }
  }

  async function countLiving(): Promise<void> {
    count = (await others(db)).length + 1;
  }

  return {
    /** Number of live processes with this one, as of the last heartbeat. */
    count: () => count,

    /** Returns the reason why the last heartbeat could not be stored, if a restart may help; otherwise null. */
    problemOfStore: () => problem,

    /** Id of this process, also stored in its claims; new at each start. */
    bootId,
    others,

    async isAlive(handle: Db, id: string): Promise<boolean> {
      return id === bootId || (await others(handle)).includes(id);
    },

    /** Stores the first heartbeat. It must complete before the first request is served. */
    async register(): Promise<void> {
      if (!shared) await deleteAllProcesses(db);
      await storeHeartbeat(db, bootId, clock.now());
      await countLiving();
    },

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: Math.max(BEAT_INTERVAL_MS, pollMs),
        run: async () => {
          await beat();
          await deleteDead(db, clock.now() - LEASE_MS);
          await countLiving();
        },
        onError: (error) => log.error({ err: error }, 'heartbeat failed'),
      });
    },

    /** Removes the heartbeat, so that other processes do not have to wait for LEASE_MS. */
    async leave(): Promise<void> {
      await loop?.stop();
      await deleteProcess(db, bootId).catch((error: unknown) =>
        log.warn({ err: error }, 'removing the heartbeat failed'),
      );
    },
  };
}

/** Stores the heartbeat of a process. */
async function storeHeartbeat(db: Db, bootId: string, nowMs: number): Promise<void> {
  await db
    .insertInto('central_processes')
    .values({ boot_id: bootId, beat_at: nowMs })
    .onConflict((conflict) => conflict.column('boot_id').doUpdateSet({ beat_at: nowMs }))
    .execute();
}

const aliveSince = prepared((db, { sinceMs }: Slots<{ sinceMs: number }>) =>
  db.selectFrom('central_processes').select('boot_id').where('beat_at', '>', sinceMs),
);

/** Lists the processes with a heartbeat after `sinceMs`. */
async function listAliveSince(db: Db, sinceMs: number): Promise<string[]> {
  const { rows } = await aliveSince(db, { sinceMs });
  return rows.map((row) => row.boot_id);
}

async function deleteProcess(db: Db, bootId: string): Promise<void> {
  await db.deleteFrom('central_processes').where('boot_id', '=', bootId).execute();
}

/** Deletes processes whose last heartbeat was at or before `untilMs`. */
async function deleteDead(db: Db, untilMs: number): Promise<void> {
  await db.deleteFrom('central_processes').where('beat_at', '<=', untilMs).execute();
}

async function deleteAllProcesses(db: Db): Promise<void> {
  await db.deleteFrom('central_processes').execute();
}
