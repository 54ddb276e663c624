/** Asks the processor about payouts that are open. A crash anywhere asks again, under the same key. */
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import { type Loop, startLoop } from '#shared/loop.ts';
import type { PayoutRow } from '../db/payouts.tables.ts';
import type { Database } from '../db/tables.ts';
import type { PayoutAnswer, PayoutProcessor } from '../ports.ts';
import { nextAskAt } from '../retry-pauses.ts';
import type { PayoutRequests } from './payout.service.ts';
import { changePayout, claimPayout, findPayout, listDuePayouts } from './payout.store.ts';

const INTERVAL_MS = 5_000;
const BATCH = 50;
/** Longer than a question can take: one of a process that died is asked again after this. */
const LEASE_MS = 120_000;
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
  let loop: Loop | null = null;

  /** It stays open until the next question: what was perhaps paid is never freed. */
  async function wait(row: PayoutRow, error: string | null): Promise<void> {
    const due = nextAskAt(row.attempts + 1, clock.now());
    await changePayout(db, row, { due_at: due, last_error: error });
  }

  async function follow(row: PayoutRow): Promise<void> {
    if (!(await claimPayout(db, row, clock.now() + LEASE_MS))) return;
    const { id, amount_uusd: amountUusd, method, address, network } = row;
    let answer: PayoutAnswer;
    try {
      answer = await processor.send({ key: id, amountUusd, method, address, network });
    } catch (error) {
      const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
      log.warn({ payout: id, attempts: row.attempts + 1, error: text }, 'payout not answered');
      return wait(row, text);
    }
    log.info({ payout: id, state: answer.state }, 'payout answered');
    await payouts.settle(id, processor.name, answer);
    const after = await findPayout(db, id);
    if (answer.state === 'pending' && after !== undefined) await wait(after, null);
  }

  /** One pass over everything due, one payout after the other. */
  async function runOnce(signal?: AbortSignal): Promise<void> {
    for (const row of await listDuePayouts(db, clock.now(), BATCH)) {
      if (signal?.aborted) return;
      await follow(row);
    }
  }

  return {
    runOnce,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: INTERVAL_MS,
        run: runOnce,
        onError: (error) => log.error({ err: error }, 'paying out failed'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
    },
  };
}
