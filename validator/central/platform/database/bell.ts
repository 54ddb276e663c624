/** Bells that a database handle carries along into its transactions, for news that are more than a row. */
import type { KyselyPlugin } from 'kysely';
import type { Database, Db } from './tables.ts';

/** What a bell tells of: new events, or work that is to happen at a time. */
type Topic = 'events' | 'due';

/** Changes no query: a plugin is what Kysely hands on from a database to its transactions. */
type Bell = KyselyPlugin & { topic: Topic; ring(word: string): void };

/** `db` with a bell. */
export function withBell(db: Database, topic: Topic, ring: Bell['ring']): Database {
  const bell: Bell = {
    topic,
    ring,
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => result,
  };
  return db.withPlugin(bell);
}

/** To be called when something has been written: whether its transaction commits is not known yet. */
export function ringBell(db: Db, topic: Topic, word: string): void {
  for (const plugin of db.getExecutor().plugins) {
    if ('ring' in plugin && (plugin as Bell).topic === topic) (plugin as Bell).ring(word);
  }
}
