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
