/**
 * Meters all billable pods periodically: checks the money of their accounts, and posts use that is due. The interval
 * does not affect the charges.
 */
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { claimBurningAccounts } from './burning.store.ts';
import { duePostings } from './posting.plan.ts';
import type { Funds } from './runway.ts';
import { settleAccounts } from './settlement.service.ts';

/**
 * Number of pods that one transaction meters. It limits the time for which requests and other writers wait. An account
 * with more pods is metered in one transaction, because its pods share one balance.
 */
const PODS_PER_BATCH = 100;

/** Called in the transaction of a spend, with the funds that each account has left. */
export type AfterSpend = (tx: Db, left: ReadonlyMap<string, Funds>) => Promise<void>;

export type MeteringJobDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  /** Time between two passes over all billable pods, in milliseconds. */
  tickMs: number;
  /** Time between two postings of a pod, unless something else causes a posting, in milliseconds. */
  postingMs: number;
  afterSpend: AfterSpend;
};

export function createMeteringJob(deps: MeteringJobDeps) {
  const { db, clock, random, log, tickMs, postingMs, afterSpend } = deps;
  let loop: Loop | null = null;

  /** Returns the cursor of the next batch; null after the last. */
  async function meterBatch(from: string): Promise<string | null> {
    return moneyTransaction({ db, clock, random }, async (tx) => {
      const { claimed, cursor } = await claimBurningAccounts(tx, {
        cursor: from,
        podLimit: PODS_PER_BATCH,
      });
      const nowMs = clock.now();
      const metered = await settleAccounts(tx, claimed, nowMs, (plan) =>
        duePostings(plan, nowMs, { postingMs, tickMs }),
      );
      await afterSpend(tx, new Map(metered.map(({ accountId, left }) => [accountId, left])));
      return cursor;
    });
  }

  async function runOnce(signal?: AbortSignal): Promise<void> {
    const yieldToEventLoop = createEventLoopYield(clock);
    let cursor: string | null = '';
    while (cursor !== null && signal?.aborted !== true) {
      cursor = await meterBatch(cursor);
      await yieldToEventLoop();
    }
  }

  return {
    /** Runs one pass over every billable pod. Tests call it instead of `start`. */
    runOnce: () => runOnce(),

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: tickMs,
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
