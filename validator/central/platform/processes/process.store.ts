/** All queries on central_processes. */
import type { Db } from '../database/tables.ts';

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
