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

const CHECK_VIOLATION = '23514';
const CHECK_MESSAGE = /^CHECK constraint failed: (\w+)$/;

/** The name of the table's condition that a query broke; null for any other failure. */
export function violatedCheck(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  if (code === CHECK_VIOLATION && typeof constraint === 'string') return constraint;
  return CHECK_MESSAGE.exec(error.message)?.[1] ?? null;
}

/** PostgreSQL's codes of a transaction that cannot be put in order with others, and of one chosen to end a deadlock. */
const LOST_CODES: readonly unknown[] = ['40001', '40P01'];

/** Whether a transaction was ended for another one's sake: begun again, it may succeed. Never on SQLite. */
export function lostToAnother(error: unknown): boolean {
  return error instanceof Error && LOST_CODES.includes((error as { code?: unknown }).code);
}
