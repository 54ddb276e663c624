/** Wraps a database to count its queries and to inject failures, deadlocks and delays. */
import type { Database } from '../../../validator/central/platform/database/tables.ts';

const WRITES = new Set(['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode']);

/** Returns a wrapper of `db`, which itself is not changed. Destroying the wrapper destroys `db`. */
export function watchDatabase(db: Database) {
  let queries = 0;
  let slowTable: string | null = null;
  let losingTable: string | null = null;
  let isFailing = false;
  let gate = Promise.withResolvers<void>();
  const slow = new WeakSet<object>();

  const plugin: Parameters<Database['withPlugin']>[0] = {
    transformQuery({ node, queryId }) {
      queries += 1;
      if (isFailing) throw new Error('the database fails');
      const names = (table: string) => JSON.stringify(node).includes(`"name":"${table}"`);
      if (slowTable !== null && names(slowTable)) slow.add(queryId);
      if (losingTable !== null && WRITES.has(node.kind) && names(losingTable)) {
        losingTable = null;
        throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
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
    /** Number of queries so far. */
    queries: () => queries,
    /** Delays the results of queries on this table until `release`. */
    hold(table: string): void {
      slowTable = table;
    },
    /** Rejects the next write to this table with PostgreSQL's deadlock error. */
    lose(table: string): void {
      losingTable = table;
    },
    /** True until the deadlock has been injected. */
    isLosing: () => losingTable !== null,
    /** Makes every query fail until `release`. */
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
