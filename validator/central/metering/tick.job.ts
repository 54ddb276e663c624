/** Settles every pod that costs money, again and again: how often changes nothing of what is charged. */
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import { type Loop, startLoop } from '#shared/loop.ts';
import type { Random } from '#shared/random.ts';
import { createTurns } from '#shared/service-manager/turns.ts';
import { moneyTransaction } from '../db/money-transaction.ts';
import type { Database, Db } from '../db/tables.ts';
import type { Wallet } from '../ledger/wallet.service.ts';
import type { Funds } from '../low-balance/low-balance.rule.ts';
import { ensureDue } from '../schedule/due.ts';
import { runsOutAt, spendsOutAt } from './runway.ts';
import { fundsOf, settleMeters, type ToSettle, walletsOf } from './settle.service.ts';
import { burningOf, burnPerHour } from './settlement.ts';
import { listBurningOf, type Meter, type MeterBounds, takeAccounts } from './usage.store.ts';

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
  const turns = createTurns(clock);
  let loop: Loop | null = null;

  /** Null once every account that is due was taken, by this process or another. */
  async function batch(cursor: string): Promise<string | null> {
    return moneyTransaction({ db, clock, random }, async (tx) => {
      const nowMs = clock.now();
      const wish = { untilMs: nowMs - intervalMs, cursor, limit: ACCOUNTS_PER_BATCH };
      const accounts = await takeAccounts(tx, wish);
      if (accounts.taken.length === 0) return accounts.cursor;
      await afterSpend(tx, await settleAccounts(tx, accounts.taken, nowMs));
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
    sinceLookMs: turns.sinceMs,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs,
        run: () => turns.noted(tick),
        onError: (error) => log.error({ err: error }, 'the meter did not tick'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}

/** Settles all burning meters of these accounts, whose rows the caller holds; returns what each has left. */
export async function settleAccounts(
  tx: Db,
  accountIds: readonly string[],
  nowMs: number,
): Promise<Map<string, Funds>> {
  const wallets = await walletsOf(tx, accountIds);
  const byAccount = Map.groupBy(await listBurningOf(tx, accountIds), (meter) => meter.account_id);
  const due: ToSettle[] = [];
  for (const [accountId, meters] of byAccount) {
    const wallet = wallets.get(accountId);
    if (wallet === undefined) continue;
    const funds = await fundsOf(wallet, tx, meters);
    const cutOffMs = runsOutAt(funds, meters.map(burningOf));
    // It is there already, unless somebody took money away without telling the runway.
    if (cutOffMs !== null && cutOffMs <= nowMs) await ensureDue(tx, 'cut-off', accountId, cutOffMs);
    for (const meter of meters) due.push({ meter, untilMs: meteredUntil(meter, cutOffMs, nowMs) });
  }
  await settleMeters(tx, due, wallets, nowMs);
  return new Map([...byAccount].map(([id, meters]) => [id, fundsLeft(wallets.get(id), meters)]));
}

function fundsLeft(wallet: Wallet | undefined, burning: readonly Meter[]): Funds {
  return { available: wallet?.available ?? 0, burnPerHour: burnPerHour(burning) };
}

/**
 * Up to when a pod's use is beyond doubt: its agent has said that it runs, and nothing that ends its time lies before.
 * What is due is thus charged up to its own instant, however late somebody wakes up.
 */
function meteredUntil(meter: Meter & MeterBounds, cutOffMs: number | null, nowMs: number): number {
  const cap = meter.max_spend_uusd;
  const capMs = cap === null ? null : spendsOutAt(burningOf(meter), cap);
  const { seen_at, removal_at, leaves_at, idle_stop_at } = meter;
  const bounds = [seen_at, removal_at, leaves_at, idle_stop_at, cutOffMs, capMs].filter(
    (ms) => ms !== null,
  );
  return Math.max(meter.settled_to_ms, Math.min(nowMs, ...bounds));
}
