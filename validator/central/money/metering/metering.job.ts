/**
 * Meters all billable pods periodically: checks the money of their accounts, and posts use that is due. The interval
 * does not affect the charges. An account that cannot be metered, such as one with an invalid balance, does not affect
 * other accounts.
 */
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import { OverloadError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import { isDamage, isSerializationFailure } from '../../../database/engine.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { claimBurningAccounts } from './burning.store.ts';
import { duePostings } from './posting.plan.ts';
import type { Funds } from './runway.ts';
import { settleAccounts } from './settlement.service.ts';

/**
 * Number of pods that one transaction meters. It limits the time for which requests and other writers wait. An account
 * with more pods is metered in one transaction, because its pods share one balance.
 */
const PODS_PER_BATCH = 100;
/** Maximum number of unmetered accounts that a pass logs one by one. */
const MAX_LOGGED = 100;

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
  /** Receives, after each pass, the number of accounts that could not be metered. */
  reportUnmetered?: ((accounts: number) => void) | undefined;
};

type Batch = Awaited<ReturnType<typeof claimBurningAccounts>>;

export function createMeteringJob(deps: MeteringJobDeps) {
  const { db, clock, random, log, tickMs, postingMs, afterSpend, reportUnmetered } = deps;
  let loop: Loop | null = null;

  /** Meters accounts whose rows the transaction has locked. */
  async function meter(tx: Db, accountIds: readonly string[]): Promise<void> {
    const nowMs = clock.now();
    const metered = await settleAccounts(tx, accountIds, nowMs, (plan) =>
      duePostings(plan, nowMs, { postingMs, tickMs }),
    );
    await afterSpend(tx, new Map(metered.map(({ accountId, left }) => [accountId, left])));
  }

  /**
   * Meters the accounts after the cursor in one transaction. If that fails because of an account, meters each of them in
   * its own transaction.
   */
  async function meterBatch(from: string, unmetered: Set<string>): Promise<Batch['cursor']> {
    let batch: Batch = { claimed: [], cursor: null };
    try {
      await moneyTransaction({ db, clock, random }, async (tx) => {
        batch = await claimBurningAccounts(tx, { cursor: from, podLimit: PODS_PER_BATCH });
        await meter(tx, batch.claimed);
      });
    } catch (error) {
      if (batch.claimed.length === 0 || !isOfAccount(error)) throw error;
      for (const accountId of batch.claimed) await meterAlone(accountId, unmetered);
    }
    return batch.cursor;
  }

  async function meterAlone(accountId: string, unmetered: Set<string>): Promise<void> {
    try {
      await moneyTransaction({ db, clock, random }, async (tx) => {
        await lockRow(tx, 'accounts', accountId);
        await meter(tx, [accountId]);
      });
    } catch (error) {
      if (!isOfAccount(error)) throw error;
      unmetered.add(accountId);
      if (unmetered.size > MAX_LOGGED) return;
      log.error({ err: error, account_id: accountId }, 'metering an account failed');
    }
  }

  async function runOnce(signal?: AbortSignal): Promise<void> {
    const yieldToEventLoop = createEventLoopYield(clock);
    const unmetered = new Set<string>();
    let cursor: string | null = '';
    while (cursor !== null && signal?.aborted !== true) {
      cursor = await meterBatch(cursor, unmetered);
      await yieldToEventLoop();
    }
    reportUnmetered?.(unmetered.size);
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

/** Returns false for errors of the whole database, with which every account would fail. */
function isOfAccount(error: unknown): boolean {
  return !(error instanceof OverloadError || isSerializationFailure(error) || isDamage(error));
}
