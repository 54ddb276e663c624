/** Settles every pod that costs money, again and again: how often changes nothing of what is charged. */
import type { Clock } from '#shared/runtime/clock.ts';
import { createHeartbeat } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import type { Funds } from '../low-balance/low-balance.rule.ts';
import { settleAccounts } from './settle-accounts.ts';
import { takeAccounts } from './usage.store.ts';

/** Accounts in one transaction, with all their pods: others wait no longer than that takes. */
const ACCOUNTS_PER_BATCH = 500;

/** What accounts have spent may have brought them below a threshold: by account what is left, in the transaction that spent it. */
export type AfterSpend = (tx: Db, left: ReadonlyMap<string, Funds>) => Promise<void>;

export type TickDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  /** Between two settlements of a pod. */
  intervalMs: number;
  afterSpend: AfterSpend;
};

export function createTickJob({ db, clock, random, log, intervalMs, afterSpend }: TickDeps) {
  const turns = createHeartbeat(clock);
  let loop: Loop | null = null;

  /** Null once every account that is due was taken, by this process or another. */
  async function batch(cursor: string): Promise<string | null> {
    return moneyTransaction({ db, clock, random }, async (tx) => {
      const nowMs = clock.now();
      const wish = { untilMs: nowMs - intervalMs, cursor, limit: ACCOUNTS_PER_BATCH };
      const accounts = await takeAccounts(tx, wish);
      if (accounts.taken.length === 0) return accounts.cursor;
      const settled = await settleAccounts(tx, accounts.taken, nowMs);
      await afterSpend(tx, new Map(settled.map(({ accountId, left }) => [accountId, left])));
      return accounts.cursor;
    });
  }

  async function tick(): Promise<void> {
    let cursor: string | null = '';
    while (cursor !== null) cursor = await batch(cursor);
  }

  return {
    /** Settles everything that was not settled for one interval: tests call it instead of `start`. */
    runOnce: tick,

    /** Milliseconds since the last tick ended. */
    sinceLookMs: turns.ageMs,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs,
        run: () => turns.beatAfter(tick),
        onError: (error) => log.error({ err: error }, 'the meter did not tick'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}
