/** Limits that a process sets for its connections to PostgreSQL, and the variables of both programs that set them. */
import { z } from 'zod';
import type { ConfigProblem } from '#shared/runtime/config.ts';

export type ServerLimits = {
  /** Maximum number of pooled connections per process; a server accepts 100 in total by default. */
  poolSize: number;
  /** Time limit of a query. Our queries are short, and a slow one must not hold its locks. */
  statementMs: number;
  /** Time limit of the wait for a lock. */
  lockMs: number;
};

export const DEFAULT_SERVER_LIMITS: ServerLimits = {
  poolSize: 20,
  statementMs: 30_000,
  lockMs: 10_000,
};

/** Requests that copy between two connections need more than one; below this, they would wait for each other. */
const MIN_POOL_SIZE = 4;
const MAX_POOL_SIZE = 500;
const MAX_STATEMENT_S = 3_600;
const MAX_LOCK_S = 600;

/** Schemas of the variables, which each program adds to its configuration under its own prefix. */
export const PoolSize = z.coerce
  .number()
  .int()
  .min(MIN_POOL_SIZE)
  .max(MAX_POOL_SIZE)
  .default(DEFAULT_SERVER_LIMITS.poolSize);
export const StatementSeconds = z.coerce
  .number()
  .int()
  .min(1)
  .max(MAX_STATEMENT_S)
  .default(DEFAULT_SERVER_LIMITS.statementMs / 1000);
export const LockSeconds = z.coerce
  .number()
  .int()
  .min(1)
  .max(MAX_LOCK_S)
  .default(DEFAULT_SERVER_LIMITS.lockMs / 1000);

/** Values of the variables. */
export type LimitValues = { poolSize: number; statementSeconds: number; lockSeconds: number };

export function serverLimitsOf(values: LimitValues): ServerLimits {
  const { poolSize, statementSeconds, lockSeconds } = values;
  return { poolSize, statementMs: statementSeconds * 1000, lockMs: lockSeconds * 1000 };
}

/** Returns a problem if a query would always end before its wait for a lock; for `rules`. */
export function serverLimitProblems(
  prefix: string,
  {
    statementSeconds,
    lockSeconds,
  }: { statementSeconds: number | undefined; lockSeconds: number | undefined },
): ConfigProblem[] {
  if (statementSeconds === undefined || lockSeconds === undefined) return [];
  if (lockSeconds < statementSeconds) return [];
  const name = `${prefix}_DATABASE_LOCK_SECONDS`;
  const message = `${name} (${lockSeconds}): must be less than ${prefix}_DATABASE_STATEMENT_SECONDS (${statementSeconds})`;
  return [{ name, message }];
}
