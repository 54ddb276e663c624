import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  createPostgresDatabase,
  onPostgres,
} from '../../../../test/fakes/scenes/central-database.ts';
import { testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { auditLedger } from '../../money/ledger/audit.service.ts';
import type { LedgerAccount } from '../../money/ledger/double-entry.ts';
import { postGroup } from '../../money/ledger/ledger.service.ts';
import { balancesOf } from '../../money/ledger/wallet.service.ts';
import { openCentralDatabase } from './database.ts';
import type { Db } from './tables.ts';
import { moneyTransaction } from './transactions.ts';

/** Creates a PostgreSQL error with this code. */
const failure = (code: string) => Object.assign(new Error('ended'), { code });

async function failing(code: string) {
  const db = await openCentralDatabase(':memory:');
  const pauses: number[] = [];
  const clock = { sleep: async (ms: number) => void pauses.push(ms) };
  let attempts = 0;
  const done = moneyTransaction({ db, clock, random: createSeededRandom(3) }, async (tx) => {
    attempts += 1;
    await tx
      .insertInto('meta')
      .values({ name: `attempt ${attempts}`, value: '' })
      .execute();
    throw failure(code);
  });
  const message = await done.catch((error: Error) => error.message);
  const left = await db.selectFrom('meta').select('name').where('name', 'like', 'a%').execute();
  await db.destroy();
  return { message, attempts, pauses, left };
}

it.each(['40001', '40P01'])(
  'retries a transaction after error %s, and rolls back each failed attempt',
  async (code) => {
    const { message, attempts, pauses, left } = await failing(code);
    expect([message, attempts, left]).toEqual(['ended', 5, []]);
    expect(pauses).toHaveLength(3);
    for (const [index, longest] of [20, 40, 80].entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(longest / 2);
      expect(pauses[index]).toBeLessThanOrEqual(longest);
    }
  },
);

it.each(['23505', '55P03', '08006'])(
  'does not retry a transaction after error %s',
  async (code) => {
    expect(await failing(code)).toMatchObject({ attempts: 1, pauses: [] });
  },
);

// Two transactions lock the same accounts in opposite order. On SQLite, transactions run one after the other.
it('commits both transactions after a deadlock', async () => {
  const db = await openCentralDatabase(onPostgres() ? await createPostgresDatabase() : ':memory:');
  const deps = { db, clock: systemClock, random: systemRandom };
  let attempts = 0;
  const first = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const post = (tx: Db, credit: LedgerAccount) =>
    postGroup(tx, [{ debit: 'external:topup', credit, amountUusd: 5 }], testCause());
  const both = (['user:a', 'user:b'] as const).map((own, index, all) =>
    moneyTransaction(deps, async (tx) => {
      attempts += 1;
      await lockOne(tx, own);
      first[index]?.resolve();
      if (onPostgres()) await first[1 - index]?.promise;
      await lockOne(tx, all[1 - index] ?? own);
      await post(tx, own);
    }),
  );
  await Promise.all(both);
  // PostgreSQL aborts one or both transactions, and the repeated transactions may conflict again.
  if (onPostgres()) expect(attempts).toBeGreaterThanOrEqual(3);
  else expect(attempts).toBe(2);
  for (const id of ['user:a', 'user:b'] as const) {
    expect((await balancesOf(db, id)).posted).toBe(5);
  }
  expect((await db.transaction().execute(auditLedger)).findings).toEqual([]);
  await db.destroy();
});

/** Locks the row until the transaction ends. */
async function lockOne(tx: Db, id: string): Promise<void> {
  const none = { debits_posted: 0, credits_posted: 0, debits_pending: 0 };
  await tx
    .insertInto('ledger_accounts')
    .values({ id, ...none })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ debits_pending: 0 }))
    .execute();
}
