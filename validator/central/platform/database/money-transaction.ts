/** Transactions that move money or change many rows, begun again where PostgreSQL ended them for another one's sake. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { isSerializationFailure } from '../../../database/engine.ts';
import type { Database, Db } from './tables.ts';

/** Whoever loses that often has met something that does not pass. */
const MAX_ATTEMPTS = 5;
/** Before the third attempt, doubled with each; the second comes at once, for the other one goes on already. */
const FIRST_PAUSE_MS = 20;

export type MoneyDeps = { db: Database; clock: Pick<Clock, 'sleep'>; random: Pick<Random, 'int'> };

/**
 * Runs `work` in a transaction, anew where it lost a deadlock or could not be put in order with others; everything it
 * had done is undone then. `work` changes nothing outside its transaction that a second run would not set again.
 */
export async function moneyTransaction<T>(
  { db, clock, random }: MoneyDeps,
  work: (tx: Db) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction().execute(work);
    } catch (error) {
      if (attempt >= MAX_ATTEMPTS || !isSerializationFailure(error)) throw error;
      if (attempt > 1) await clock.sleep(pauseMs(attempt, random));
    }
  }
}

/** Jittered, so that two that lost to each other do not meet again. */
function pauseMs(attempt: number, random: Pick<Random, 'int'>): number {
  const longest = FIRST_PAUSE_MS * 2 ** (attempt - 2);
  return longest / 2 + random.int(longest / 2 + 1);
}
