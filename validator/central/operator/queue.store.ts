/** Counts of work whose jobs poll without the schedule: webhooks, charges and payouts. */
import type { Db } from '../platform/database/tables.ts';
import type { Waiting } from '../platform/metrics/backlog.store.ts';

type Failing = Waiting & { failing: number };
const NONE: Failing = { count: 0, oldestMs: null, failing: 0 };

/** Enabled webhooks whose last attempt failed. `oldestMs` is the first failure since the last success. */
export async function webhooksFailing(db: Db): Promise<Failing> {
  const found = await db
    .selectFrom('webhooks')
    .select((eb) => [
      eb.fn.countAll<number>().as('count'),
      eb.fn.min('failing_since').as('oldestMs'),
      eb.fn.countAll<number>().as('failing'),
    ])
    .where('is_enabled', '=', 1)
    .where('attempts', '>', 0)
    .executeTakeFirst();
  return found ?? NONE;
}

/** Charges in progress whose next request to the processor is due. */
export async function chargesWaiting(db: Db, nowMs: number): Promise<Failing> {
  const found = await db
    .selectFrom('topups')
    .select((eb) => [
      eb.fn.countAll<number>().as('count'),
      eb.fn.min('due_at').as('oldestMs'),
      eb.fn.count<number>('last_error').as('failing'),
    ])
    .where('state', 'in', ['charging', 'pending'])
    .where('due_at', '<=', nowMs)
    .executeTakeFirst();
  return found ?? NONE;
}

/** Open payouts whose next request to the processor is due. */
export async function payoutsWaiting(db: Db, nowMs: number): Promise<Failing> {
  const found = await db
    .selectFrom('payouts')
    .select((eb) => [
      eb.fn.countAll<number>().as('count'),
      eb.fn.min('due_at').as('oldestMs'),
      eb.fn.count<number>('last_error').as('failing'),
    ])
    .where('state', 'in', ['requested', 'pending'])
    .where('due_at', '<=', nowMs)
    .executeTakeFirst();
  return found ?? NONE;
}
