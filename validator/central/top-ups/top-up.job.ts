/** Asks the payment processor about charges that are in flight. A crash anywhere asks again, under the same key. */
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import { type Loop, startLoop } from '#shared/loop.ts';
import { paymentCustomerOf } from '../accounts/account.service.ts';
import type { TopUpRow } from '../db/around-balance.tables.ts';
import type { Database } from '../db/tables.ts';
import type { ChargeAnswer, Payments } from '../ports.ts';
import { nextAskAt } from '../retry-pauses.ts';
import type { TopUps } from './top-up.service.ts';
import { isGivenUp } from './top-up.state.ts';
import { changeTopUp, claimTopUp, listDueTopUps } from './top-up.store.ts';

const INTERVAL_MS = 5_000;
const BATCH = 50;
/** Longer than a question can take: one of a process that died is asked again after this. */
const LEASE_MS = 120_000;
const MAX_ERROR_CHARS = 200;

export type TopUpJobDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  payments: Payments;
  topUps: TopUps;
};
export type TopUpJob = ReturnType<typeof createTopUpJob>;

export function createTopUpJob({ db, clock, log, payments, topUps }: TopUpJobDeps) {
  let loop: Loop | null = null;

  async function ask(row: TopUpRow): Promise<ChargeAnswer> {
    if (row.external_id !== null) return payments.lookUp(row.external_id);
    return payments.charge({
      key: row.id,
      customerId: await paymentCustomerOf(db, row.account_id),
      paymentMethodId: row.payment_method_id,
      amountUusd: row.amount_uusd,
    });
  }

  /** It stays as it is until the next question, unless word comes by itself. */
  async function wait(row: TopUpRow, error: string | null): Promise<void> {
    const due = nextAskAt(row.attempts + 1, clock.now());
    await changeTopUp(db, row, { due_at: due, last_error: error });
  }

  async function follow(row: TopUpRow): Promise<void> {
    const nowMs = clock.now();
    if (!(await claimTopUp(db, row, nowMs + LEASE_MS))) return;
    const { state, created_at: createdMs } = row;
    if (isGivenUp({ state, createdMs }, nowMs)) return topUps.giveUp(row);
    let answer: ChargeAnswer;
    try {
      answer = await ask(row);
    } catch (error) {
      const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
      log.warn({ top_up: row.id, attempts: row.attempts + 1, error: text }, 'charge not answered');
      return wait(row, text);
    }
    log.info({ top_up: row.id, state: answer.state }, 'charge answered');
    await topUps.settle(row.id, answer);
    if (answer.state === 'pending') await wait({ ...row, state: 'pending' }, null);
  }

  /** One pass over everything due, one charge after the other. */
  async function runOnce(signal?: AbortSignal): Promise<void> {
    for (const row of await listDueTopUps(db, clock.now(), BATCH)) {
      if (signal?.aborted) return;
      await follow(row);
    }
    await payments.poll?.(async (news) => {
      await topUps.hear(news);
    });
  }

  return {
    runOnce,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: INTERVAL_MS,
        run: runOnce,
        onError: (error) => log.error({ err: error }, 'charging top-ups failed'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
    },
  };
}
