/** Fills a table with generated rows, to measure work over many of them. */
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

/** Inserts `count` rows with the given SQL value by column; other required columns without a default get 0 or '{}'. */
export function fillTable(
  db: DatabaseSync,
  table: string,
  values: Record<string, string>,
  count: number,
): void {
  const columns = db.prepare(`pragma table_info(${table})`).all();
  const wanted = columns.filter(({ name, notnull, dflt_value: preset }) => {
    const isGiven = values[String(name)] !== undefined;
    return isGiven || (notnull === 1 && preset === null);
  });
  const names = wanted.map(({ name }) => String(name));
  const made = wanted.map(({ name, type }) => {
    return values[String(name)] ?? (type === 'INTEGER' ? '0' : `'{}'`);
  });
  db.exec(`with recursive n(i) as (select 0 union all select i + 1 from n where i < ${count - 1})
    insert into ${table} (${names.join(', ')}) select ${made.join(', ')} from n`);
}
