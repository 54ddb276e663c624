/** Doctors' check of a database: a damaged or missing file, an unreachable server, and old backups. Changes nothing. */
import { existsSync } from 'node:fs';
import { sql } from 'kysely';
import { fail, type Outcome, ok, unlessTimedOut, warn } from '#shared/check/check.ts';
import { type Observed, observe } from '#shared/check/observe.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { backupFolderOf, listBackups } from './database-backup.ts';
import type { BackupPlan } from './database-watch.ts';
import { inFileThread } from './file-thread.ts';
import {
  damageWords,
  isPostgresAddress,
  lossText,
  moveNotice,
  openDatabase,
} from './open-database.ts';
import type { DatabaseLocation } from './ownership.ts';

type Known =
  | { place: 'absent' }
  /** `text` states that the file is missing, and the remedy. */
  | { place: 'missing'; text: string }
  /** `text` states where the database is now, and the remedy. */
  | { place: 'moved'; text: string }
  | { place: 'file'; finding: string | null; backups: number; newestAgeMs: number | null }
  | { place: 'server'; checksums: boolean; failures: number };
export type DatabaseFacts = Observed<Known>;

const READ_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Age of the newest backup, in intervals, at which the check warns. */
const LATE_INTERVALS = 3;

/** Reads a whole file, or queries a server for its count of failed checksums. */
export function readDatabaseFacts(
  clock: Clock,
  location: DatabaseLocation,
  { folder }: Pick<BackupPlan, 'folder'>,
): Promise<DatabaseFacts> {
  return observe<Known>(clock, READ_MS, () => {
    if (isPostgresAddress(location.address)) return readServer(location);
    return readFile(clock, location, folder);
  });
}

async function readFile(clock: Clock, location: DatabaseLocation, folder: string | undefined) {
  const { address } = location;
  const text = lossText(location);
  if (text !== null) return { place: 'missing', text } as const;
  if (!existsSync(address)) return { place: 'absent' } as const;
  const moved = await moveNotice(location);
  if (moved !== null) return { place: 'moved', text: moved } as const;
  const finding = await inFileThread({ kind: 'check', path: address });
  const backups = listBackups(address, folder ?? backupFolderOf(address));
  const [newest] = backups;
  const newestAgeMs = newest === undefined ? null : clock.now() - newest.atMs;
  return { place: 'file', finding, backups: backups.length, newestAgeMs } as const;
}

async function readServer(location: DatabaseLocation) {
  const db = await openDatabase<unknown>({ ...location, applicationName: 'podwright-doctor' });
  try {
    const { rows } = await sql<{ checksums: string; failures: number | null }>`
      select current_setting('data_checksums') as checksums, sum(checksum_failures) as failures
      from pg_stat_database where datname = current_database()`.execute(db);
    const { checksums, failures } = rows[0] ?? { checksums: 'off', failures: 0 };
    return { place: 'server', checksums: checksums === 'on', failures: failures ?? 0 } as const;
  } finally {
    await db.destroy();
  }
}

/** Judges the facts of the database at `location`. */
export function judgeDatabase(
  observed: DatabaseFacts,
  location: DatabaseLocation,
  { hours }: Pick<BackupPlan, 'hours'>,
): Outcome {
  if ('problem' in observed) {
    const remedy = 'run the doctor as the user of the process; check that the database server runs';
    return unlessTimedOut(observed, fail(observed.problem, remedy));
  }
  const { value } = observed;
  const { database, remedy } = damageWords(location.address, location.kind);
  if (value.place === 'absent') return ok('does not exist yet: the first start creates it');
  if (value.place === 'missing') return fail(value.text, remedy);
  if (value.place === 'moved') {
    return fail(value.text, `set ${location.variable} to the address of the other database`);
  }
  if (value.place === 'server') return judgeServer(value);
  if (value.finding !== null) return fail(`${database} is damaged: ${value.finding}`, remedy);
  const { backups, newestAgeMs } = value;
  const ageHours = newestAgeMs === null ? null : Math.floor(newestAgeMs / HOUR_MS);
  const age = ageHours === null ? '' : `, the newest ${ageHours} h old`;
  const measured = `undamaged; ${backups} backups${age}`;
  if (hours === 0 || ageHours === null || ageHours <= hours * LATE_INTERVALS) return ok(measured);
  return warn(measured, 'start the process, which makes the backups, or read its log');
}

function judgeServer({ checksums, failures }: { checksums: boolean; failures: number }): Outcome {
  if (failures > 0) {
    return fail(
      `the PostgreSQL server found ${failures} damaged pages`,
      'restore the database with the backups of your PostgreSQL server; then reset the count: select pg_stat_reset()',
    );
  }
  if (checksums) return ok('the PostgreSQL server verifies checksums and found no damaged page');
  return ok('the PostgreSQL server has no checksums: it notices damage only when it reads a page');
}
