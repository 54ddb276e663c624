/** Queries the payment processor about charges in flight. After a crash it repeats the request under the same key. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { paymentCustomerOf } from '../../accounts/account/account.service.ts';
import type { Database, TopUpRow } from '../../platform/database/tables.ts';
import type { ChargeAnswer, Payments } from '../../platform/ports.ts';
import { createAttempts, nextRequestAt } from '../../platform/retries.ts';
import type { TopUps } from './top-up.service.ts';
import { isExpired } from './top-up.state.ts';
import { changeTopUp, topUpsInFlight } from './top-up.store.ts';

const MAX_ERROR_CHARS = 200;

export type TopUpJobDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  payments: Payments;
  topUps: TopUps;
  /** Shortest pause between two passes. */
  pollMs?: number | undefined;
};
export type TopUpJob = ReturnType<typeof createTopUpJob>;

export function createTopUpJob({ db, clock, log, payments, topUps, pollMs }: TopUpJobDeps) {
  async function query(row: TopUpRow): Promise<ChargeAnswer> {
    if (row.external_id !== null) return payments.findCharge(row.external_id);
    return payments.charge({
      key: row.id,
      customerId: await paymentCustomerOf(db, row.account_id),
      paymentMethodId: row.payment_method_id,
      amountUusd: row.amount_uusd,
    });
  }

  /** Schedules the next query. A callback of the processor may come first. */
  async function postpone(row: TopUpRow, error: string | null): Promise<void> {
    const due = nextRequestAt(row.attempts, clock.now());
    await changeTopUp(db, row, { due_at: due, last_error: error });
  }

  async function attempt(row: TopUpRow): Promise<void> {
    const { state, created_at: createdMs } = row;
    if (isExpired({ state, createdMs }, clock.now())) return topUps.expire(row);
    let answer: ChargeAnswer;
    try {
      answer = await query(row);
    } catch (error) {
      const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
      log.warn(
        { top_up: row.id, attempts: row.attempts, error: text },
        'payment processor did not answer for a charge',
      );
      return postpone(row, text);
    }
    log.info({ top_up: row.id, state: answer.state }, 'payment processor answered for a charge');
    await topUps.settle(row.id, answer);
    if (answer.state === 'pending') await postpone({ ...row, state: 'pending' }, null);
  }

  return createAttempts({
    pollMs,
    db,
    clock,
    log,
    rows: topUpsInFlight,
    attempt,
    afterPass: async () => {
      await payments.poll?.(async (event) => {
        await topUps.applyEvent(event);
      });
    },
    failure: 'pass over charges failed',
  });
}
