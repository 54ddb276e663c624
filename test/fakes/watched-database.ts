/** A database whose queries are counted, and can fail or be kept waiting for their answers. */
import type { Database } from '../../validator/central/db/tables.ts';

/** `db` itself stays as it is; ending the watched one ends it. */
export function watchDatabase(db: Database) {
  let queries = 0;
  let slowTable: string | null = null;
  let isFailing = false;
  let gate = Promise.withResolvers<void>();
  const slow = new WeakSet<object>();

  const plugin: Parameters<Database['withPlugin']>[0] = {
    transformQuery({ node, queryId }) {
      queries += 1;
      if (isFailing) throw new Error('the database fails');
      if (slowTable !== null && JSON.stringify(node).includes(`"name":"${slowTable}"`)) {
        slow.add(queryId);
      }
      return node;
    },
    async transformResult({ result, queryId }) {
      if (slow.has(queryId)) await gate.promise;
      return result;
    },
  };

  return {
    db: Object.assign(db.withPlugin(plugin), { destroy: () => db.destroy() }),
    /** Queries so far. */
    queries: () => queries,
    /** From now on what is asked of this table stays without an answer until `release`. */
    hold(table: string): void {
      slowTable = table;
    },
    /** From now on every query fails until `release`. */
    fail(): void {
      isFailing = true;
    },
    release(): void {
      isFailing = false;
      slowTable = null;
      gate.resolve();
      gate = Promise.withResolvers();
    },
  };
}
