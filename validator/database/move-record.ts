/**
 * The table `database_move`, which both databases of a move have: the SQLite file as source, and the PostgreSQL database
 * as target. A row has the state of the move; in the target, further rows have the progress of each table.
 */
import { type Kysely, sql } from 'kysely';
import { z } from 'zod';
import { naiveUtc } from '#shared/runtime/clock.ts';

type AnyDb = Pick<Kysely<unknown>, 'getExecutor'>;

export const MOVE_TABLE = 'database_move';

/** Creates the table on either engine. */
export const MOVE_TABLE_SQL = `create table if not exists ${MOVE_TABLE} (name text primary key, value text not null)`;

/** Name of the row with the state of the move. */
export const MOVE_ROW = 'move';

const MoveRecord = z.object({
  /** Identifies the move; the same in both databases. */
  id: z.string(),
  role: z.enum(['source', 'target']),
  state: z.enum(['copying', 'done']),
  /** The other database, without its password. */
  other: z.string(),
  /** Time at which the state was recorded. */
  atMs: z.number(),
});
export type MoveRecord = z.output<typeof MoveRecord>;

export function parseMoveRecord(text: string): MoveRecord {
  return MoveRecord.parse(JSON.parse(text));
}

/** Reads the state of the move from a database that has the table; null if the table lacks the row. */
export async function readMoveRecord(db: AnyDb): Promise<MoveRecord | null> {
  const query = sql<{
    value: string;
  }>`select value from ${sql.table(MOVE_TABLE)} where name = ${MOVE_ROW}`;
  const { rows } = await query.execute(db);
  return rows[0] === undefined ? null : parseMoveRecord(rows[0].value);
}

/**
 * Describes why no process may use the database, and the remedy; null if the database is the target of a completed
 * move. `place` names the database, `command` is the command that moves it, and `variable` holds its address.
 */
export function moveProblem(
  { role, state, other, atMs }: MoveRecord,
  { place, command, variable }: { place: string; command: string; variable: string },
): string | null {
  const at = `${naiveUtc(atMs).slice(0, 19)}Z`;
  if (role === 'target') {
    if (state === 'done') return null;
    return `${place} has an incomplete copy of ${other}. Repeat the move, which continues: ${command}`;
  }
  if (state === 'copying') {
    return (
      `the move of ${place} to ${other} is not complete. Repeat the move, which continues: ${command}. ` +
      `To keep this database instead, undo the move: ${command} --undo`
    );
  }
  return (
    `${place} was moved to ${other} at ${at}. Set ${variable} to the address of that database. ` +
    `To return to this database, which lacks all changes since then, undo the move: ${command} --undo`
  );
}
