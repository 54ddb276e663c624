/** Retries of rows that call external services (mails, payouts, top-ups): one row after the other, each leased by one process. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { DueRow, DueRows } from './database/due-rows.ts';
import type { Database } from './database/tables.ts';

const INTERVAL_MS = 5_000;
const BATCH = 50;
/** Longer than an attempt can take. If the process dies, another one retries the row after this. */
const LEASE_MS = 120_000;

export type AttemptsDeps<Row extends DueRow> = {
  db: Database;
  clock: Clock;
  log: Log;
  rows: DueRows<Row>;
  /** Makes one attempt, already counted in `row.attempts`, and stores its result and the next due time in the row. */
  attempt(row: Row): Promise<void>;
  /** Called at the end of each pass. */
  afterPass?(): Promise<void>;
  /** Log line for a failed pass. */
  failure: string;
};

export function createAttempts<Row extends DueRow>(deps: AttemptsDeps<Row>) {
  const { db, clock, log, rows, attempt, afterPass, failure } = deps;
  let loop: Loop | null = null;

  /** One pass over everything due. */
  async function runOnce(signal?: AbortSignal): Promise<void> {
    for (const row of await rows.list(db, clock.now(), BATCH)) {
      if (signal?.aborted) return;
      const taken = await rows.claim(db, row, clock.now() + LEASE_MS);
      if (taken !== null) await attempt(taken);
    }
    await afterPass?.();
  }

  return {
    runOnce,

    /** Starts a pass now. */
    wake: () => loop?.wake(),

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: INTERVAL_MS,
        run: runOnce,
        onError: (error) => log.error({ err: error }, failure),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
    },
  };
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Pauses after the first, second, … attempt of a mail or a webhook. After the last one it has failed. */
export const RETRY_PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  HOUR_MS,
  6 * HOUR_MS,
  24 * HOUR_MS,
];

/** Pauses between requests to a payment or payout processor, which are repeated until there is a result. */
const ASK_PAUSES_MS: readonly number[] = [10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS];

/** Time of the next request to the processor after this many attempts. */
export function nextAskAt(attempts: number, nowMs: number): number {
  return nowMs + (ASK_PAUSES_MS[attempts - 1] ?? HOUR_MS);
}
