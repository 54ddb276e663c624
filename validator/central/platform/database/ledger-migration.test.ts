import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { createPodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { openHolds, setAvailable } from '../../../../test/fakes/scenes/wallet.ts';
import { isPostgres } from '../../../database/engine.ts';
import { walletOf } from '../../money/ledger/wallet.service.ts';
import { ledger } from './migrations/0022-ledger.ts';
import { POSTGRES_DIALECT, SQLITE_DIALECT } from './sql-dialects.ts';
import type { Database } from './tables.ts';

const HELD_UUSD = 550_000;

/**
 * Restores the schema before the ledger migration, with these balances and with a hold for every pod that has not
 * ended.
 */
async function withoutLedger(db: Database, balances: ReadonlyMap<string, number>): Promise<void> {
  for (const statement of [
    `drop trigger billing_ticks_no_delete${isPostgres(db) ? ' on billing_ticks' : ''}`,
    'drop table transfers',
    'drop table ledger_groups',
    'drop table ledger_accounts',
    ...(isPostgres(db)
      ? ['drop function transfers_only_grows()', 'drop function ledger_groups_only_grows()']
      : []),
    'alter table accounts add column balance_uusd bigint not null default 0 check (balance_uusd >= 0)',
    'drop index pods_pledged',
    'alter table pods drop column hold_id',
    'alter table pods add column hold_uusd bigint not null default 0 check (hold_uusd >= 0)',
    `create index pods_pledged on pods
      (account_id, state, hold_uusd, price_uusd_per_gpu_hour, gpu_count) where ended_at is null`,
    `update pods set hold_uusd = ${HELD_UUSD} where state <> 'deleting'`,
  ]) {
    await sql.raw(statement.replace('bigint', isPostgres(db) ? 'bigint' : 'integer')).execute(db);
  }
  for (const [id, balance] of balances) {
    await sql`update accounts set balance_uusd = ${balance} where id = ${id}`.execute(db);
  }
}

it('the migration moves balances, as granted credit, and the holds of pods into the ledger', async () => {
  const scene = await createPodScene();
  const { db } = scene.market.ports;
  const poor = await scene.market.renter();
  const lowered = await scene.market.renter();
  await setAvailable(db, 10_000_000);
  const [kept, ended] = [await scene.rentOne(), await scene.rentOne()];
  await scene.remove(ended);
  const other = await scene.market.verifiedNode({ gpus: 1 });
  expect((await scene.market.rent(lowered, other.id)).status).toBe(200);

  const balances = new Map([
    [scene.account.id, 7_000_000],
    [poor.id, 0],
    [lowered.id, 1],
  ]);
  await withoutLedger(db, balances);
  for (const statement of ledger(isPostgres(db) ? POSTGRES_DIALECT : SQLITE_DIALECT)) {
    await sql.raw(statement).execute(db);
  }

  const walletIn = async (id: string) => {
    const { paid, granted, held } = await walletOf(db, id);
    return [paid, granted, held];
  };
  expect(await walletIn(scene.account.id)).toEqual([0, 7_000_000, HELD_UUSD]);
  expect(await walletIn(poor.id)).toEqual([0, 0, 0]);
  expect(await walletIn(lowered.id)).toEqual([0, HELD_UUSD, HELD_UUSD]);
  const [granted] = await db
    .selectFrom('ledger_accounts')
    .select('debits_posted')
    .where('id', '=', 'platform:credits_granted')
    .execute();
  expect(granted?.debits_posted).toBe(7_000_000 + HELD_UUSD);

  expect((await openHolds(db)).size).toBe(2);
  expect((await scene.remove(kept)).status).toBe(200);
  expect((await openHolds(db)).size).toBe(1);
  expect(await walletIn(scene.account.id)).toEqual([0, expect.any(Number), 0]);
  const next = await scene.market.verifiedNode({ gpus: 1 });
  expect((await scene.market.rent(scene.account, next.id)).status).toBe(200);
  await scene.market.close();
});
