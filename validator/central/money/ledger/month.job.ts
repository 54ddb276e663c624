/** Closes the months of the ledger some days after their end. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Database } from '../../platform/database/tables.ts';
import { closeMonths } from './month-close.service.ts';

const HOUR_MS = 3_600_000;
/** Time after the end of a month, in which an operator can check the month before it is closed. */
const CLOSE_AFTER_MS = 3 * 24 * HOUR_MS;

export type MonthJobDeps = { db: Database; clock: Clock; log: Log };

export function createMonthJob({ db, clock, log }: MonthJobDeps) {
  let loop: Loop | null = null;

  async function runOnce(): Promise<void> {
    for (const { month, transfers } of await closeMonths({ db, clock }, CLOSE_AFTER_MS)) {
      log.info({ month, transfers }, 'closed a month of the ledger');
    }
  }

  return {
    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: HOUR_MS,
        run: runOnce,
        onError: (error) => log.error({ err: error }, 'closing a month of the ledger failed'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}
