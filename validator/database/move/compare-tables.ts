/** Compares the rows of the tables on both sides of a move. */
import type { Kysely } from 'kysely';
import type { Progress } from '#shared/runtime/progress.ts';
import { createFingerprint } from './fingerprint.ts';
import { refusal } from './move-error.ts';
import type { SourceFile } from './source-file.ts';
import type { Table } from './table.ts';
import { readRows } from './target-server.ts';

export type Comparison = {
  /** Rows and hash of each table, equal on both sides. */
  tables: readonly { name: string; rows: number; hash: string }[];
};

type Sides<Tables> = {
  file: SourceFile;
  tables: readonly Table[];
  to: Kysely<Tables>;
  /** Columns of a table that are not compared. */
  ignored(table: string): readonly string[];
};

type Ports = { progress: Pick<Progress, 'step'>; yieldToEventLoop(): Promise<void> };

/** Rejects with ConfigError if a table differs, after all tables have been compared. */
export async function compareTables<Tables>(
  { file, tables, to, ignored }: Sides<Tables>,
  { progress, yieldToEventLoop }: Ports,
): Promise<Comparison> {
  const equal: Comparison['tables'][number][] = [];
  const different: string[] = [];
  for (const table of tables) {
    const { name } = table;
    progress.step(`comparing ${name}`);
    const ofSource = createFingerprint(table, ignored(name));
    for (const { rows } of file.batches(table, null)) {
      for (const row of rows) ofSource.add(row);
      await yieldToEventLoop();
    }
    const ofTarget = createFingerprint(table, ignored(name));
    await readRows(to, table, ofTarget.add);
    const [source, target] = [ofSource.result(), ofTarget.result()];
    if (source.rows === target.rows && source.hash === target.hash) equal.push({ name, ...source });
    else different.push(`${name} (${source.rows} rows in the file, ${target.rows} in the copy)`);
  }
  if (different.length === 0) return { tables: equal };
  throw refusal(
    'copy_differs',
    `these tables differ: ${different.join(', ')}. Undo the move, and move to another empty database`,
  );
}
