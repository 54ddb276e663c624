/** Which of the two database engines is under a database, and what they call the same thing. */
import { type Kysely, PostgresAdapter } from 'kysely';

/** Whether other processes may work on the same database. */
export function isPostgres(db: Pick<Kysely<unknown>, 'getExecutor'>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** PostgreSQL's code of a unique key that is taken, SQLite's beginning of that message. */
const UNIQUE_VIOLATION = '23505';
const UNIQUE_MESSAGE = 'UNIQUE constraint failed';

/** Whether a query failed because a unique key is taken: on PostgreSQL a look before it cannot rule that out. */
export function isUniqueViolation(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return code === UNIQUE_VIOLATION || error.message.startsWith(UNIQUE_MESSAGE);
}
