/** Asks the processor about payouts that are open. A crash anywhere asks again, under the same key. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database, PayoutRow } from '../../platform/database/tables.ts';
import type { PayoutAnswer, PayoutProcessor } from '../../platform/ports.ts';
import { createAttempts, nextAskAt } from '../../platform/retries.ts';
import type { PayoutRequests } from './payout.service.ts';
import { changePayout, openPayouts } from './payout.store.ts';

const MAX_ERROR_CHARS = 200;

export type PayoutJobDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  processor: PayoutProcessor;
  payouts: Pick<PayoutRequests, 'settle'>;
};
export type PayoutJob = ReturnType<typeof createPayoutJob>;

export function createPayoutJob({ db, clock, log, processor, payouts }: PayoutJobDeps) {
  /** It stays open until the next question: what was perhaps paid is never freed. */
  async function wait(row: PayoutRow, error: string | null): Promise<void> {
    const due = nextAskAt(row.attempts, clock.now());
    await changePayout(db, row, { due_at: due, last_error: error });
  }

  async function attempt(row: PayoutRow): Promise<void> {
    const { id, amount_uusd: amountUusd, method, address, network } = row;
    let answer: PayoutAnswer;
    try {
      answer = await processor.send({ key: id, amountUusd, method, address, network });
    } catch (error) {
      const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
      log.warn({ payout: id, attempts: row.attempts, error: text }, 'payout not answered');
      return wait(row, text);
    }
    log.info({ payout: id, state: answer.state }, 'payout answered');
    await payouts.settle(id, processor.name, answer);
    if (answer.state === 'pending') await wait({ ...row, state: 'pending' }, null);
  }

  return createAttempts({
    ...{ db, clock, log, rows: openPayouts, attempt },
    failure: 'paying out failed',
  });
}
