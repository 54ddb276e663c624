/** Tries what is due and calls upon the world, one row after the other, each by one process at a time. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { DueRow, DueRows } from './database/due-rows.ts';
import type { Database } from './database/tables.ts';

const INTERVAL_MS = 5_000;
const BATCH = 50;
/** Longer than an attempt can take: what a process had taken that died is tried again after this. */
const LEASE_MS = 120_000;

export type AttemptsDeps<Row extends DueRow> = {
  db: Database;
  clock: Clock;
  log: Log;
  rows: DueRows<Row>;
  /** One attempt, which `row.attempts` counts already; notes in the row what came of it, and when it is due again. */
  attempt(row: Row): Promise<void>;
  /** At the end of each pass. */
  afterPass?(): Promise<void>;
  /** What the log says of a pass that failed. */
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

    /** Looks for new rows now. */
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

/** When what goes out to the world is tried again: mails, webhooks (marketplace reference 1.14), payments. Pure. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Pauses after the first, second, … attempt; after the last one it has failed. */
export const RETRY_PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  HOUR_MS,
  6 * HOUR_MS,
  24 * HOUR_MS,
];

/** Of questions to who moves money, which are asked again for as long as somebody waits for the answer. */
const ASK_PAUSES_MS: readonly number[] = [10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS];

/** When the processor is asked again, after so many attempts. */
export function nextAskAt(attempts: number, nowMs: number): number {
  return nowMs + (ASK_PAUSES_MS[attempts - 1] ?? HOUR_MS);
}
