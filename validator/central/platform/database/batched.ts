/** Combines reads that several callers request at the same time into one query. */
import DataLoader from 'dataloader';

/** Maximum number of keys in one query. */
const MAX_KEYS = 256;

/**
 * Returns a function that reads the rows of one key. `query` receives the keys of all calls of the same turn of the
 * event loop. Nothing is cached: a call returns what is committed after it was made. If the query fails, each key is
 * read separately, so that a damaged row of one key does not affect the others.
 */
export function batchedRows<Row>(
  query: (keys: readonly string[]) => Promise<readonly Row[]>,
  keyOf: (row: Row) => string,
): (key: string) => Promise<Row[]> {
  async function readOne(key: string): Promise<Row[] | Error> {
    return query([key]).then(
      (rows) => [...rows],
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    );
  }

  async function readAll(keys: readonly string[]): Promise<(Row[] | Error)[]> {
    try {
      const rows = Map.groupBy(await query(keys), keyOf);
      return keys.map((key) => rows.get(key) ?? []);
    } catch {
      return Promise.all(keys.map(readOne));
    }
  }

  const loader = new DataLoader<string, Row[]>(readAll, { cache: false, maxBatchSize: MAX_KEYS });
  return (key) => loader.load(key);
}
