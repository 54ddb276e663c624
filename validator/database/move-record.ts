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
 * move. `place` names the database, `move` is the command that moves a database of its kind, `option` the option
 * that names its file, and `setting` the variable that sets the address of a server.
 */
export function moveProblem(
  { role, state, other, atMs }: MoveRecord,
  {
    place,
    move,
    option,
    setting,
  }: { place: string; move: string; option: string; setting: string },
): string | null {
  const at = `${naiveUtc(atMs).slice(0, 19)}Z`;
  const file = `--${option} ${role === 'source' ? place : other}`;
  const repeat = `Repeat the move, which continues: ${move} --to ADDRESS ${file}`;
  if (role === 'target') {
    return state === 'done' ? null : `${place} has an incomplete copy of ${other}. ${repeat}`;
  }
  const undo = `undo the move: ${move} --undo ${file}`;
  if (state === 'copying') {
    return `the move of ${place} to ${other} is not complete. ${repeat}. To keep this database instead, ${undo}`;
  }
  return (
    `${place} was moved to ${other} at ${at}. Set ${setting} to the address of that database. ` +
    `To return to this database, which lacks all changes since then, ${undo}`
  );
}
