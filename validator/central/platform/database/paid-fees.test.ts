import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { createPodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { setAvailable, testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { isPostgres } from '../../../database/engine.ts';
import { postGroup } from '../../money/ledger/ledger.service.ts';
import { paidAccount } from '../../money/ledger/wallet.service.ts';
import { paidFees } from './migrations/0056-paid-fees.ts';
import { POSTGRES_DIALECT, SQLITE_DIALECT } from './sql-dialects.ts';

const USD = 1_000_000;

it('derives the fees of pods that were charged before the table existed', async () => {
  const scene = await createPodScene();
  const { db } = scene.market.ports;
  const allFees = () => db.selectFrom('executor_fees').selectAll().execute();
  const [, fill = ''] = paidFees(isPostgres(db) ? POSTGRES_DIALECT : SQLITE_DIALECT);
  const leg = { debit: 'external:topup', credit: paidAccount(scene.account.id) } as const;
  await db.updateTable('executors').set({ price_uusd_per_gpu_hour: 1_234_567_891 }).execute();
  await setAvailable(db, 30 * USD, scene.account.id);
  await db
    .transaction()
    .execute((tx) => postGroup(tx, [{ ...leg, amountUusd: 400 * USD }], testCause()));
  // Paid with granted and paid credit; a part is returned because of a fault.
  const id = await scene.running();
  for (let round = 0; round < 3; round += 1) await scene.later(45_000);
  scene.host.change(id, { phase: 'backoff' });
  await scene.later(45_000);
  await scene.market.central.meterPods();
  for (const state of ['unhealthy', 'refunded']) {
    const stored = await allFees();
    await db.deleteFrom('executor_fees').execute();
    await sql.raw(fill).execute(db);
    expect([state, await allFees()]).toEqual([state, stored]);
    expect(stored[0]?.fee_uusd).toBeGreaterThan(0);
    scene.host.up = false;
    await scene.later(70_000);
    await scene.later(3 * 3_600_000);
  }
  const refunds = await db.selectFrom('usage_refunds').select('amount_uusd').execute();
  expect(refunds).toHaveLength(1);
  await scene.close();
});
