/**
 * Periodic work on a process's database: checks of its file for damage, and backups. On PostgreSQL neither happens: the
 * server checks its data itself, and its operator makes the backups.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { DatabaseDamage } from '#shared/runtime/database-damage.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import { backupFolderOf, isBackupDue, listBackups } from './database-backup.ts';
import { inFileThread } from './file-thread.ts';
import { isFileAddress } from './open-database.ts';
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
  damage: DatabaseDamage;
  plan: BackupPlan;
  clock: Clock;
  log: Log;
};

export type DatabaseWatch = {
  /** Description of the last backup for /readyz. Rejects if it failed. */
  backup(): Promise<string>;
  stop(): Promise<void>;
};

const HOUR_MS = 3_600_000;
const CHECK_INTERVAL_MS = HOUR_MS;
/** Short, because the time of the newest backup decides whether one is due. */
const BACKUP_POLL_MS = 300_000;

/** Starts the checks and backups of a database. */
export function watchDatabase(options: WatchOptions): DatabaseWatch {
  const { clock, log } = options;
  const { address, variable } = options.location;
  const isFile = isFileAddress(variable, address);
  let problem: string | null = null;
  if (!isFile) return { backup: async () => SERVER_BACKUPS, stop: async () => undefined };
  const loops = [
    startLoop({
      clock,
      intervalMs: CHECK_INTERVAL_MS,
      run: (signal) => checkFile(options, signal),
      onError: (error) => log.error({ err: error }, 'the check of the database failed'),
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
    async backup() {
      if (problem !== null) throw new Error(problem);
      return describeBackups(options);
    },
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

const SERVER_BACKUPS = 'made by the operator of the PostgreSQL server';

async function checkFile({ location, damage }: WatchOptions, signal: AbortSignal): Promise<void> {
  if (damage.problem() !== null) return;
  const finding = await inFileThread({ kind: 'check', path: location.address }, signal);
  if (finding !== null) damage.record(finding);
}

async function backUpIfDue(options: WatchOptions, signal: AbortSignal): Promise<void> {
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
