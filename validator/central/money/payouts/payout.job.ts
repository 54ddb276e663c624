/** Sends open payouts to the processor until it answers. After a crash it repeats the request under the same key. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database, PayoutRow } from '../../platform/database/tables.ts';
import type { PayoutAnswer, PayoutProcessor } from '../../platform/ports.ts';
import { createAttempts, nextRequestAt } from '../../platform/retries.ts';
import type { Payouts } from './payout.service.ts';
import { changePayout, openPayouts } from './payout.store.ts';

const MAX_ERROR_CHARS = 200;

export type PayoutJobDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  processor: PayoutProcessor;
  payouts: Pick<Payouts, 'settle' | 'withdrawalOf'>;
  /** Shortest pause between two passes. */
  pollMs?: number | undefined;
};
export type PayoutJob = ReturnType<typeof createPayoutJob>;

export function createPayoutJob({ db, clock, log, processor, payouts, pollMs }: PayoutJobDeps) {
  /** Schedules the next request. The hold stays, because the payout may have been paid. */
  async function postpone(row: PayoutRow, error: string | null): Promise<void> {
    const due = nextRequestAt(row.attempts, clock.now());
    await changePayout(db, row, { due_at: due, last_error: error });
  }

  /** Returns the processor's answer. A payout that was never sent is declined here if its party was banned since. */
  async function answerOf(row: PayoutRow): Promise<PayoutAnswer> {
    const { id, amount_uusd: amountUusd, method, address, network } = row;
    const withdrawal = row.attempts === 1 ? await payouts.withdrawalOf(row) : null;
    return withdrawal ?? processor.send({ key: id, amountUusd, method, address, network });
  }

  async function attempt(row: PayoutRow): Promise<void> {
    const { id } = row;
    let answer: PayoutAnswer;
    try {
      answer = await answerOf(row);
    } catch (error) {
      const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
      log.warn(
        { payout: id, attempts: row.attempts, error: text },
        'payout processor did not answer',
      );
      return postpone(row, text);
    }
    log.info({ payout: id, state: answer.state }, 'payout has an answer');
    await payouts.settle(id, processor.name, answer);
    if (answer.state === 'pending') await postpone({ ...row, state: 'pending' }, null);
  }

  return createAttempts({
    pollMs,
    db,
    clock,
    log,
    rows: openPayouts,
    attempt,
    failure: 'pass over payouts failed',
  });
}
