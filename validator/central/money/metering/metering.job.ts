/** Settles all billable pods periodically. The interval does not affect the charges. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import type { Funds } from './runway.ts';
import { settleAccounts } from './settlement.service.ts';
import { claimDueAccounts } from './usage.store.ts';

/**
 * Number of accounts that one transaction settles, with all their pods. It limits the time for which other writers
 * wait.
 */
const ACCOUNTS_PER_BATCH = 500;

/** Called in the transaction of a spend, with the funds that each account has left. */
export type AfterSpend = (tx: Db, left: ReadonlyMap<string, Funds>) => Promise<void>;

export type MeteringJobDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  /** Time between two settlements of a pod, in milliseconds. */
  intervalMs: number;
  afterSpend: AfterSpend;
};

export function createMeteringJob(deps: MeteringJobDeps) {
  const { db, clock, random, log, intervalMs, afterSpend } = deps;
  let loop: Loop | null = null;

  /** Returns the cursor of the next batch; null after the last. */
  async function settleBatch(cursor: string): Promise<string | null> {
    return moneyTransaction({ db, clock, random }, async (tx) => {
      const nowMs = clock.now();
      const untilMs = nowMs - intervalMs;
      const accounts = await claimDueAccounts(tx, { untilMs, cursor, limit: ACCOUNTS_PER_BATCH });
      if (accounts.claimed.length === 0) return accounts.cursor;
      const settled = await settleAccounts(tx, accounts.claimed, nowMs);
      await afterSpend(tx, new Map(settled.map(({ accountId, left }) => [accountId, left])));
      return accounts.cursor;
    });
  }

  async function runOnce(): Promise<void> {
    let cursor: string | null = '';
    while (cursor !== null) cursor = await settleBatch(cursor);
  }

  return {
    /** Settles every pod that was not settled within the last interval. Tests call it instead of `start`. */
    runOnce,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs,
        run: runOnce,
        onError: (error) => log.error({ err: error }, 'metering pass failed'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}
