/** Counts the rows of a database, for reports. */
import { type Kysely, sql } from 'kysely';
import { tablesIn } from './ownership.ts';

type AnyDb = Pick<Kysely<unknown>, 'getExecutor'>;
export type RowCount = { name: string; rows: number };

/** Returns every table with the number of its rows. */
export async function countRows(db: AnyDb): Promise<RowCount[]> {
  const counts: RowCount[] = [];
  for (const name of await tablesIn(db)) {
    const query = sql<{ found: number }>`select count(*) as found from ${sql.table(name)}`;
    const { rows } = await query.execute(db);
    counts.push({ name, rows: Number(rows[0]?.found) });
  }
  return counts;
}
