/**
 * Which processes of the central API live: what a dead one had claimed is anybody's. A process says so every
 * few seconds; one that was silent for `LEASE_MS` counts as dead. Should it only have been slow, nothing is
 * done twice: a claim that was lost undoes the transaction that rested on it.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { isDiskFull } from '#shared/runtime/sqlite.ts';
import type { Database, Db } from './database/tables.ts';

const BEAT_INTERVAL_MS = 2_000;
/** Far above the interval and what clocks of well-kept machines differ by. */
export const LEASE_MS = 10_000;

export type ProcessesDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  bootId: string;
  /** False: no other process can be at work on this database (SQLite). */
  shared: boolean;
};

export type Processes = ReturnType<typeof createProcesses>;

/** This process among the others. */
export function createProcesses({ db, clock, log, bootId, shared }: ProcessesDeps) {
  let loop: Loop | null = null;
  let problem: string | null = null;

  /** Those that live, without this one. */
  async function others(handle: Db): Promise<string[]> {
    const living = await listBeatingSince(handle, clock.now() - LEASE_MS);
    return living.filter((id) => id !== bootId);
  }

  /** A server that is away, or a full disk, comes back without a restart of ours. */
  async function beat(): Promise<void> {
    try {
      await noteBeat(db, bootId, clock.now());
      problem = null;
    } catch (error) {
      problem = shared || isDiskFull(error) ? null : messageOf(error);
      throw error;
    }
  }

  return {
    /** Why the database took no word of this process last, where a restart may help; null otherwise. */
    problemOfStore: () => problem,

    /** Names this process and its claims; new at each start. */
    bootId,
    others,

    async isAlive(handle: Db, id: string): Promise<boolean> {
      return id === bootId || (await others(handle)).includes(id);
    },

    /** To be awaited before requests are taken. */
    async register(): Promise<void> {
      if (!shared) await dropAllProcesses(db);
      await noteBeat(db, bootId, clock.now());
    },

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: BEAT_INTERVAL_MS,
        run: async () => {
          await beat();
          await dropSilent(db, clock.now() - LEASE_MS);
        },
        onError: (error) => log.error({ err: error }, 'this process could not say that it lives'),
      });
    },

    /** The others need not wait until it counts as dead. */
    async leave(): Promise<void> {
      await loop?.stop();
      await dropProcess(db, bootId).catch((error: unknown) =>
        log.warn({ err: error }, 'this process could not say that it ends'),
      );
    },
  };
}

// MERGED validator/central/platform/processes.ts: All queries on central_processes.
/** Says that the process lives, now. */
export async function noteBeat(db: Db, bootId: string, nowMs: number): Promise<void> {
  await db
    .insertInto('central_processes')
    .values({ boot_id: bootId, beat_at: nowMs })
    .onConflict((conflict) => conflict.column('boot_id').doUpdateSet({ beat_at: nowMs }))
    .execute();
}

/** Those that said so after `sinceMs`. */
export async function listBeatingSince(db: Db, sinceMs: number): Promise<string[]> {
  const rows = await db
    .selectFrom('central_processes')
    .select('boot_id')
    .where('beat_at', '>', sinceMs)
    .execute();
  return rows.map((row) => row.boot_id);
}

/** Forgets one process. */
export async function dropProcess(db: Db, bootId: string): Promise<void> {
  await db.deleteFrom('central_processes').where('boot_id', '=', bootId).execute();
}

/** Forgets every process that was last heard at or before `untilMs`. */
export async function dropSilent(db: Db, untilMs: number): Promise<void> {
  await db.deleteFrom('central_processes').where('beat_at', '<=', untilMs).execute();
}

/** Forgets every process. */
export async function dropAllProcesses(db: Db): Promise<void> {
  await db.deleteFrom('central_processes').execute();
}
