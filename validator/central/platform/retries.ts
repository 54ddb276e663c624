/**
 * Retries of rows that call external services (mails, payouts, top-ups). A pass processes one row after the other; a
 * process leases each row before it processes it.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { DueRow, DueRows } from './database/due-rows.ts';
import type { Database } from './database/tables.ts';

const INTERVAL_MS = 5_000;
const BATCH = 50;
/**
 * Duration of a lease: longer than an attempt can take. If the process ends during an attempt, another process retries
 * the row after this time.
 */
const LEASE_MS = 120_000;

export type AttemptsDeps<Row extends DueRow> = {
  db: Database;
  clock: Clock;
  log: Log;
  rows: DueRows<Row>;
  /**
   * Makes one attempt, which `row.attempts` already includes, and stores its result and the next due time in the row.
   */
  attempt(row: Row): Promise<void>;
  /** Called at the end of each pass. */
  afterPass?(): Promise<void>;
  /** Shortest pause between two passes; default: five seconds. */
  pollMs?: number | undefined;
  /** Message that is logged when a pass fails. */
  failure: string;
};

export function createAttempts<Row extends DueRow>(deps: AttemptsDeps<Row>) {
  const { db, clock, log, rows, attempt, afterPass, failure } = deps;
  let loop: Loop | null = null;

  /** Runs one pass over the due rows, at most BATCH of them. */
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

    /** Starts a pass now instead of at the next interval. */
    wake: () => loop?.wake(),

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: Math.max(INTERVAL_MS, deps.pollMs ?? 0),
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

/**
 * Pauses after the first, second, … attempt of a mail or a webhook. The attempt after the last pause is the last one.
 */
export const RETRY_PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  HOUR_MS,
  6 * HOUR_MS,
  24 * HOUR_MS,
];

/**
 * Pauses after the first three requests to a payment or payout processor. All further requests are an hour apart, until
 * the processor returns a result.
 */
const REQUEST_PAUSES_MS: readonly number[] = [10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS];

/** Returns the time of the next request to the processor after this many attempts. */
export function nextRequestAt(attempts: number, nowMs: number): number {
  return nowMs + (REQUEST_PAUSES_MS[attempts - 1] ?? HOUR_MS);
}
