/** Query plans of the database engine, for tests that require an index. */
import { CompiledQuery, type KyselyPlugin } from 'kysely';
import type { Database, Db } from '../../../validator/central/platform/database/tables.ts';
import { isPostgres } from '../../../validator/database/engine.ts';

/** Returns the lines of the plan of the first query that `work` sends. */
export async function planOf(db: Database, work: (db: Db) => Promise<unknown>): Promise<string[]> {
  const sent: CompiledQuery[] = [];
  const listen: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      sent.push(db.getExecutor().compileQuery(node, queryId));
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  await work(db.withPlugin(listen));
  const [query = CompiledQuery.raw('')] = sent;
  const explain = isPostgres(db) ? 'explain' : 'explain query plan';
  const plan = CompiledQuery.raw(`${explain} ${query.sql}`, [...query.parameters]);
  const { rows } = await db.executeQuery<Record<string, unknown>>(plan);
  return rows.map((row) => String(row['detail'] ?? row['QUERY PLAN']));
}
