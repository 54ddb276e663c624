/**
 * Periodic work on a process's database: checkpoints, checks that its file is undamaged and in its place, the reserve of
 * disk space, and backups. On PostgreSQL none
 * happens: the server checks its data itself, and its operator makes the backups.
 */
import { statSync } from 'node:fs';
import type { Kysely } from 'kysely';
import type { ReadinessProbe } from '#shared/api/readiness.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createDatabaseDamage, type DatabaseDamage } from '#shared/runtime/database-damage.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { backupFolderOf, isBackupDue, listBackups } from './database-backup.ts';
import { fillReserve } from './disk-reserve.ts';
import { checkpoint } from './engine.ts';
import { inFileThread } from './file-thread.ts';
import { damageWords, isFileAddress, lockDatabaseFile } from './open-database.ts';
import type { DatabaseLocation } from './ownership.ts';

export type BackupPlan = {
  /** Hours between two backups; 0 for none. */
  hours: number;
  /** Number of newest backups that are kept. */
  keep: number;
  /** Undefined: a folder beside the database. */
  folder?: string | undefined;
};

export type WatchOptions = {
  location: DatabaseLocation;
  plan: BackupPlan;
  clock: Clock;
  log: Log;
};

type Watched = WatchOptions & {
  db: AnyDatabase;
  damage: DatabaseDamage;
  /** True if the file was just checked. */
  isChecked: boolean;
};

type AnyDatabase = Pick<Kysely<unknown>, 'getExecutor' | 'destroy'>;

/** State of a process's database. */
export type DatabaseHealth = {
  damage: Pick<DatabaseDamage, 'problem' | 'onRecord'>;
  /** Description of the last backup for /readyz. Rejects if it failed. */
  backup(): Promise<string>;
};

/** Health of a database that nothing checks, such as one in memory. */
export const INTACT_DATABASE: DatabaseHealth = {
  damage: { problem: () => null, onRecord: () => undefined },
  backup: async () => 'none',
};

export type WatchedDatabase<T> = {
  db: T;
  health: DatabaseHealth;
  /** Ends the work, closes the database and releases its lock. */
  close(): Promise<void>;
};

const HOUR_MS = 3_600_000;
const CHECK_INTERVAL_MS = HOUR_MS;
/** Interval between two checks whether the newest backup is old enough for the next one. */
const BACKUP_POLL_MS = 300_000;
/** Interval between two checkpoints: a lost journal costs at most the changes of this time. */
const CHECKPOINT_INTERVAL_MS = 60_000;
/** Interval between two checks that the file is in its place. */
const PLACE_INTERVAL_MS = 1_000;

/**
 * Locks a database, opens it with `open`, and starts its checks and backups. Rejects as `lockDatabaseFile` does. With
 * `isNew`, accepts that the file is missing although it existed before.
 */
export async function openWatchedDatabase<T extends AnyDatabase>(
  options: WatchOptions & { isNew: boolean },
  open: (damage: DatabaseDamage) => Promise<T>,
): Promise<WatchedDatabase<T>> {
  const { location, isNew, log } = options;
  const lock = await lockDatabaseFile(location, { isNew });
  try {
    const damage = createDatabaseDamage({ ...damageWords(location.address, location.kind), log });
    const db = await open(damage);
    const watch = watchDatabase({ ...options, db, damage, isChecked: lock.isChecked });
    return {
      db,
      health: watch,
      async close() {
        await watch.stop();
        await db.destroy();
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    throw error;
  }
}

function watchDatabase(options: Watched): DatabaseHealth & { stop(): Promise<void> } {
  const { clock, log } = options;
  const { address, variable } = options.location;
  const isFile = isFileAddress(variable, address);
  const { damage } = options;
  let problem: string | null = null;
  let { isChecked } = options;
  if (!isFile) return { damage, backup: async () => SERVER_BACKUPS, stop: async () => undefined };
  const loops = [
    watchPlace(options),
    startLoop({
      clock,
      intervalMs: CHECK_INTERVAL_MS,
      async run(signal) {
        if (!isChecked) await checkFile(options, signal);
        isChecked = false;
      },
      onError: (error) => log.error({ err: error }, 'the check of the database failed'),
    }),
    startLoop({
      clock,
      intervalMs: CHECKPOINT_INTERVAL_MS,
      async run() {
        if (damage.problem() !== null) return;
        await checkpoint(options.db);
        // Only the central API has urgent requests.
        if (options.location.kind === 'central') fillReserve(address);
      },
      onError: (error) => log.error({ err: error }, 'the checkpoint of the database failed'),
    }),
    startLoop({
      clock,
      intervalMs: BACKUP_POLL_MS,
      async run(signal) {
        await backUpIfDue(options, signal);
        problem = null;
      },
      onError(error) {
        problem = messageOf(error);
        log.error({ err: error }, 'the backup of the database failed');
      },
    }),
  ];
  return {
    damage,
    async backup() {
      if (problem !== null) throw new Error(problem);
      return describeBackups(options);
    },
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

/** Readiness probes of a process's database, by component name. `ping` queries the database. */
export function databaseProbes(
  { damage, backup }: DatabaseHealth,
  ping: () => Promise<unknown>,
): Record<string, ReadinessProbe> {
  return {
    database: {
      required: true,
      async check() {
        const problem = damage.problem();
        if (problem !== null) throw new Error(problem);
        await ping();
        return 'answers';
      },
    },
    'database-backups': { required: false, check: backup },
  };
}

const SERVER_BACKUPS = 'made by the operator of the PostgreSQL server';

/** Records when the file that was opened is no longer at its path. */
function watchPlace({ location, damage, clock, log }: Watched): Loop {
  const { address } = location;
  const opened = statSync(address);
  return startLoop({
    clock,
    intervalMs: PLACE_INTERVAL_MS,
    async run() {
      const state = stateOfPlace(address, opened);
      if (state !== null) damage.recordReplaced(state);
    },
    onError: (error) => log.error({ err: error }, 'the file of the database cannot be checked'),
  });
}

/** Returns null if the file at the path is still the file that was opened. */
function stateOfPlace(
  path: string,
  opened: { dev: number; ino: number },
): 'moved' | 'replaced' | null {
  try {
    const { dev, ino } = statSync(path);
    return dev === opened.dev && ino === opened.ino ? null : 'replaced';
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'moved';
    throw error;
  }
}

async function checkFile({ location, damage }: Watched, signal: AbortSignal): Promise<void> {
  if (damage.problem() !== null) return;
  const finding = await inFileThread({ kind: 'check', path: location.address }, signal);
  if (finding !== null) damage.record(finding);
}

async function backUpIfDue(options: Watched, signal: AbortSignal): Promise<void> {
  const { location, damage, plan, clock, log } = options;
  const { address } = location;
  const folder = plan.folder ?? backupFolderOf(address);
  const nowMs = clock.now();
  const intervalMs = plan.hours * HOUR_MS;
  // A damaged database must not replace good backups.
  if (intervalMs === 0 || damage.problem() !== null) return;
  if (!isBackupDue(listBackups(address, folder)[0], intervalMs, nowMs)) return;
  const request = { path: address, folder, nowMs, keep: plan.keep };
  const path = await inFileThread({ kind: 'backup', request }, signal);
  log.info({ path }, 'the database was backed up');
}

function describeBackups({ location, plan, clock }: WatchOptions): string {
  if (plan.hours === 0) return 'switched off';
  const [newest] = listBackups(location.address, plan.folder ?? backupFolderOf(location.address));
  if (newest === undefined) return 'none yet';
  return `newest ${Math.floor((clock.now() - newest.atMs) / HOUR_MS)} h old`;
}
