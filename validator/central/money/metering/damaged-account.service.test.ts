/** Metering of other accounts while the balance of one account is damaged, on both databases. */
import { afterEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import { runSql } from '../../../../test/fakes/scenes/central-database.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createCentralMetrics } from '../../platform/metrics/central-metrics.ts';
import { auditLedger } from '../ledger/audit.service.ts';

const MINUTE_MS = 60_000;
const RENTERS = 5;

let market: Awaited<ReturnType<typeof createTestMarket>>;
afterEach(() => market?.close());

/** Rents a pod for each of the renters, and returns the ids of accounts and pods, ordered by account. */
async function rentals(): Promise<{ accountId: string; podId: string }[]> {
  const node = await market.verifiedNode({ gpus: RENTERS, minimum: 1 });
  const rented: { accountId: string; podId: string }[] = [];
  for (let index = 0; index < RENTERS; index += 1) {
    const account = await market.renter();
    const { body } = await market.rent(account, node.id, { gpu_count: 1 });
    rented.push({ accountId: account.id, podId: body.id });
  }
  await market.sync();
  return rented.toSorted((a, b) => (a.accountId < b.accountId ? -1 : 1));
}

async function tick(): Promise<void> {
  await market.clock.advance(MINUTE_MS);
  await market.sync();
  await market.central.meterPods();
}

const settledTo = async (podId: string) =>
  (
    await market.ports.db
      .selectFrom('usage_meters')
      .select('settled_to_ms')
      .where('pod_id', '=', podId)
      .executeTakeFirstOrThrow()
  ).settled_to_ms;

it.each([0, 2, RENTERS - 1])('meters all other accounts if account %d is damaged', async (at) => {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(
    { name: 'test', level: 'error' },
    { write: (line) => lines.push(JSON.parse(line)) },
  );
  const clock = createManualClock();
  const metrics = createCentralMetrics(clock);
  market = await createTestMarket({ clock, log, metrics, meterPostingMs: 1 });
  const { db } = market.ports;
  const rented = await rentals();
  await tick();
  const damaged = rented[at] ?? expect.fail('no such renter');
  // The sum with the account's other balance is beyond the safe integer range.
  const row = `('user:${damaged.accountId}', 0, ${Number.MAX_SAFE_INTEGER}, 0)`;
  const columns = 'id, debits_posted, credits_posted, debits_pending';
  await runSql(db, `insert into ledger_accounts (${columns}) values ${row}`);
  const before = await settledTo(damaged.podId);
  await tick();
  for (const { podId } of rented) {
    expect(await settledTo(podId)).toBe(podId === damaged.podId ? before : before + MINUTE_MS);
  }
  const failures = lines.filter(({ msg }) => msg === 'metering an account failed');
  expect(failures.map(({ account_id: id }) => id)).toEqual([damaged.accountId]);
  expect(await metrics.render()).toMatch(/^podwright_central_unmetered_accounts 1$/m);

  await runSql(db, `delete from ledger_accounts where id = 'user:${damaged.accountId}'`);
  await tick();
  for (const { podId } of rented) expect(await settledTo(podId)).toBe(before + 2 * MINUTE_MS);
  expect(await metrics.render()).toMatch(/^podwright_central_unmetered_accounts 0$/m);
  expect((await db.transaction().execute(auditLedger)).findings).toEqual([]);
});
