/** A database whose queries are counted, and can fail, lose to others or be kept waiting for their answers. */
import type { Database } from '../../../validator/central/platform/database/tables.ts';

const WRITES = new Set(['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode']);

/** `db` itself stays as it is; ending the watched one ends it. */
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
    /** Queries so far. */
    queries: () => queries,
    /** From now on what is asked of this table stays without an answer until `release`. */
    hold(table: string): void {
      slowTable = table;
    },
    /** The next write to this table is refused as PostgreSQL refuses that of one of two who wait for each other. */
    lose(table: string): void {
      losingTable = table;
    },
    /** Whether `lose` is still to come. */
    isLosing: () => losingTable !== null,
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
